"""What a load sends where nobody says: by the server that it goes to, the same for every command."""

from __future__ import annotations

from collections.abc import Mapping

from layers.collectors.load.endpoints.registry import ENDPOINTS
from layers.collectors.server_adapters.adapter import ServerCallFailed, ServerInfo
from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.registry import adapter_for
from parsers.errors import UsageError

ENGINE_DATA = {"asr": "audio:uniform,seconds=1-3", "tts": "text:uniform,words=3-8,same"}
"""Lengths that every size of the bundled engine's models takes; no cache of it knows equal texts."""
ENGINE_ENDPOINT = {"asr": "transcriptions", "tts": "speech"}
"""By the bundled engine's pipeline."""


def pipeline_of(adapter: GenericAdapter | None, info: ServerInfo | None) -> str:
    """The pipeline of the bundled engine; empty for any other server."""
    if info is None or not isinstance(adapter, BundledAdapter):
        return ""
    return str(info.settings.get("pipeline", ""))


def pipeline_at(url: str, headers: Mapping[str, str]) -> str:
    """That of the server at this address; empty as well where it says nothing of itself."""
    try:
        adapter = adapter_for(url, headers)
        return pipeline_of(adapter, adapter.info())
    except ServerCallFailed:  # the load meets the same, and says more of it
        return ""


def usual_endpoint(pipeline: str, endpoint: str | None) -> str:
    """The endpoint that was named, else the pipeline's, else chat; UsageError for one that there is not."""
    found = endpoint or ENGINE_ENDPOINT.get(pipeline, "chat")
    if found not in ENDPOINTS:
        raise UsageError(f"--endpoint {found}: there are {', '.join(ENDPOINTS)}")
    return found


def usual_data(pipeline: str, endpoint: str) -> str:
    """The data set of an endpoint: of the bundled engine's own, lengths that its models take."""
    if ENGINE_ENDPOINT.get(pipeline) == endpoint:
        return ENGINE_DATA[pipeline]
    return "audio" if endpoint == "transcriptions" else "text"
