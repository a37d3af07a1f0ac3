"""POST /v1/chat/completions.

Options: `continuous_usage` (bool) asks for a running token count in every chunk (vLLM, SGLang), which tells
how many tokens a chunk carries; all other options go into the request as they are (temperature, ignore_eos,
…).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from layers.collectors.load.endpoints.endpoint import Answer, Body, Reading
from layers.collectors.load.endpoints.openai_stream import read_answer
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice
from parsers.errors import UsageError

EVENT_STREAM = "text/event-stream"
OURS = frozenset({"continuous_usage"})
"""Options that are not fields of the request."""


class Chat:
    """Sends `messages`, or `text` as one message of the user."""

    unit = "token"

    def __init__(self, choice: EndpointChoice) -> None:
        self.path = choice.path or "/v1/chat/completions"
        self._fixed = openai_fields(choice)
        self._accept = EVENT_STREAM if choice.stream else ""

    def check(self, items: Iterable[Item]) -> None:
        for item in items:
            if not item.messages and not item.text:
                raise UsageError(f"item {item.id}: chat needs messages or a text")

    def build(self, item: Item, nonce: str) -> Body:
        messages = [msgspec.to_builtins(message) for message in item.messages]
        messages = messages or [{"role": "user", "content": item.text}]
        if nonce:
            messages[0]["content"] = marked(messages[0]["content"], nonce)
        wanted = {"max_tokens": item.max_tokens} if item.max_tokens is not None else {}
        body = {**self._fixed, **wanted, **item.fields, "messages": messages}
        return Body(msgspec.json.encode(body), accept=self._accept)

    def read(self, answer: Answer) -> Reading:
        return read_answer(answer)


def openai_fields(choice: EndpointChoice) -> dict[str, Any]:
    """The fields that all requests of a run share."""
    fields: dict[str, Any] = {"model": choice.model} if choice.model else {}
    fields["stream"] = choice.stream
    if choice.stream:
        fields["stream_options"] = {"include_usage": True}
        if choice.options.get("continuous_usage"):
            fields["stream_options"]["continuous_usage_stats"] = True
    return fields | {name: value for name, value in choice.options.items() if name not in OURS}


def marked(text: str, nonce: str) -> str:
    """The text behind a mark that makes its beginning unlike any other's: a prefix cache finds nothing."""
    return f"[{nonce}] {text}"
