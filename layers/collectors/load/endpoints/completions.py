"""POST /v1/completions. Options as those of chat."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from layers.collectors.load.endpoints.chat import EVENT_STREAM, marked, openai_fields
from layers.collectors.load.endpoints.endpoint import Answer, Body, Reading
from layers.collectors.load.endpoints.openai_stream import read_answer
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice
from parsers.errors import UsageError


class Completions:
    """Sends `text` as the prompt."""

    unit = "token"

    def __init__(self, choice: EndpointChoice) -> None:
        self.path = choice.path or "/v1/completions"
        self._fixed = openai_fields(choice)
        self._accept = EVENT_STREAM if choice.stream else ""

    def check(self, items: Iterable[Item]) -> None:
        for item in items:
            if not item.text:
                raise UsageError(f"item {item.id}: completions need a text")

    def build(self, item: Item, nonce: str) -> Body:
        prompt = marked(item.text, nonce) if nonce else item.text
        wanted = {"max_tokens": item.max_tokens} if item.max_tokens is not None else {}
        body = {**self._fixed, **wanted, **item.fields, "prompt": prompt}
        return Body(msgspec.json.encode(body), accept=self._accept)

    def read(self, answer: Answer) -> Reading:
        return read_answer(answer)
