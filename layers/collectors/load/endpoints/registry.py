"""Endpoints by name."""

from __future__ import annotations

from collections.abc import Callable

from layers.collectors.load.endpoints.chat import Chat
from layers.collectors.load.endpoints.completions import Completions
from layers.collectors.load.endpoints.endpoint import Endpoint
from layers.collectors.load.endpoints.sglang_generate import SglangGenerate
from layers.collectors.load.endpoints.speech import Speech
from layers.collectors.load.endpoints.template import Template
from layers.collectors.load.endpoints.transcriptions import Transcriptions
from layers.collectors.load.plan import EndpointChoice
from parsers.errors import UsageError

ENDPOINTS: dict[str, Callable[[EndpointChoice], Endpoint]] = {
    "chat": Chat,
    "completions": Completions,
    "speech": Speech,
    "transcriptions": Transcriptions,
    "sglang-generate": SglangGenerate,
    "template": Template,
}


def endpoint_for(choice: EndpointChoice) -> Endpoint:
    """The endpoint of that name; UsageError where there is none."""
    if choice.name not in ENDPOINTS:
        raise UsageError(f"endpoint {choice.name}: there are {', '.join(ENDPOINTS)}")
    return ENDPOINTS[choice.name](choice)
