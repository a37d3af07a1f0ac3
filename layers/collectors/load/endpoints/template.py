"""Any HTTP endpoint that takes JSON: the request by a template, the answer by a path into it.

Options: `body`, JSON in which a text `{name}` stands for a field of the item (text, id, max_tokens, or one of
its `fields`), alone as that value, within other text as text; `text_path`, where the answer's text is, such
as `output.0.text`; `usage_path`, where the number of output tokens is. A stream is read as events where it is
one; else each piece of the body is an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from layers.collectors.load.endpoints.chat import EVENT_STREAM, marked
from layers.collectors.load.endpoints.endpoint import Answer, Body, Piece, Reading
from layers.collectors.load.endpoints.openai_stream import DONE
from layers.collectors.load.endpoints.sse import read_events
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import Outcome, usage_told
from parsers.errors import UsageError
from parsers.not_json import NOT_JSON

FIELD = re.compile(r"\{(\w+)\}")


class Template:
    """Sends the template filled in."""

    unit = "token"

    def __init__(self, choice: EndpointChoice) -> None:
        options = choice.options
        if not choice.path or "body" not in options:
            raise UsageError("a template needs a path and a body")
        self.path, self._body, self._stream = choice.path, options["body"], choice.stream
        self._text_path, self._usage_path = options.get("text_path", ""), options.get("usage_path", "")

    def check(self, items: Iterable[Item]) -> None:
        for item in items:
            filled(self._body, values_of(item, ""), item.id)

    def build(self, item: Item, nonce: str) -> Body:
        body = filled(self._body, values_of(item, nonce), item.id)
        return Body(msgspec.json.encode(body), accept=EVENT_STREAM if self._stream else "")

    def read(self, answer: Answer) -> Reading:
        if "text/event-stream" in answer.headers.get("content-type", ""):
            events = read_events(answer.pieces).events
            pieces = [Piece(event.stamp_ns, event.data) for event in events if event.data != DONE]
        else:
            pieces = list(answer.pieces)
        if not self._text_path:
            texts = [piece.data.decode(errors="replace") for piece in pieces]
            return self._reading(pieces, texts, None)
        return self._read_json(answer, pieces)

    def _read_json(self, answer: Answer, pieces: list[Piece]) -> Reading:
        streamed = "text/event-stream" in answer.headers.get("content-type", "")
        whole = pieces if streamed else [Piece(pieces[-1].stamp_ns, answer.body)]
        try:
            values = [msgspec.json.decode(piece.data) for piece in whole]
        except NOT_JSON as error:
            return Reading(Outcome.PROTOCOL, f"the answer is no JSON: {error}")
        texts = [str(at_path(value, self._text_path) or "") for value in values]
        counts = [at_path(value, self._usage_path) for value in values] if self._usage_path else []
        tokens = next((count for count in reversed(counts) if isinstance(count, int)), None)
        return self._reading(whole, texts, tokens, timed=streamed)

    def _reading(
        self, pieces: list[Piece], texts: list[str], tokens: int | None, *, timed: bool = True
    ) -> Reading:
        said = [piece.stamp_ns for piece, text in zip(pieces, texts, strict=True) if text]
        usage = usage_told(completion=tokens)
        outcome = Outcome.OK if said else Outcome.EMPTY
        stamps = tuple(said) if timed and self._stream else ()
        return Reading(outcome, event_ns=stamps, usage=usage, text="".join(texts))


def values_of(item: Item, nonce: str) -> dict[str, Any]:
    """What a template may name."""
    text = marked(item.text, nonce) if nonce else item.text
    own = {"id": item.id, "text": text, "max_tokens": item.max_tokens, "expected": item.expected}
    return {**own, **item.fields}


def filled(template: Any, values: dict[str, Any], item: str) -> Any:
    """The template with every `{name}` replaced; UsageError for a name that the item does not have."""
    if isinstance(template, dict):
        return {key: filled(part, values, item) for key, part in template.items()}
    if isinstance(template, list):
        return [filled(part, values, item) for part in template]
    if not isinstance(template, str):
        return template
    if missing := [name for name in FIELD.findall(template) if name not in values]:
        raise UsageError(f"item {item}: the template names {missing[0]}, which the item does not have")
    if whole := FIELD.fullmatch(template):
        return values[whole[1]]
    return FIELD.sub(lambda found: str(values[found[1]]), template)


def at_path(value: Any, path: str) -> Any:
    """What stands at `a.0.b`; None where nothing does."""
    for step in path.split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value
