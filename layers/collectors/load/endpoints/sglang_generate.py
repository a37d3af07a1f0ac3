"""POST /generate, SGLang's own endpoint.

Each event has the whole text so far, or with --incremental-streaming-output what is new, and a running count
of tokens. Options go into `sampling_params`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from layers.collectors.load.endpoints.chat import EVENT_STREAM, marked
from layers.collectors.load.endpoints.endpoint import Answer, Body, Piece, Reading, ids_of
from layers.collectors.load.endpoints.openai_stream import DONE, error_of, stream_outcome
from layers.collectors.load.endpoints.sse import read_events
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import NO_USAGE, Outcome, Usage, usage_told
from parsers.errors import UsageError
from parsers.not_json import NOT_JSON


class Meta(msgspec.Struct):
    id: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: Any = None


class Part(msgspec.Struct):
    text: str = ""
    meta_info: Meta | None = None
    error: Any = None
    output_ids: Any = None


_decoder = msgspec.json.Decoder(Part)


class SglangGenerate:
    """Sends `text`."""

    unit = "token"

    def __init__(self, choice: EndpointChoice) -> None:
        self.path = choice.path or "/generate"
        self._stream, self._sampling = choice.stream, dict(choice.options)

    def check(self, items: Iterable[Item]) -> None:
        for item in items:
            if not item.text:
                raise UsageError(f"item {item.id}: /generate needs a text")

    def build(self, item: Item, nonce: str) -> Body:
        wanted = {"max_new_tokens": item.max_tokens} if item.max_tokens is not None else {}
        body = {
            "text": marked(item.text, nonce) if nonce else item.text,
            "sampling_params": {**self._sampling, **wanted},
            "stream": self._stream,
            **item.fields,
        }
        return Body(msgspec.json.encode(body), accept=EVENT_STREAM if self._stream else "")

    def read(self, answer: Answer) -> Reading:
        if "text/event-stream" in answer.headers.get("content-type", ""):
            return _read_stream(answer.pieces)
        return _read(answer.body)


def _read(body: bytes) -> Reading:
    try:
        part = _decoder.decode(body)
    except NOT_JSON as error:
        return Reading(Outcome.PROTOCOL, f"the answer is not what /generate answers: {error}")
    if part.error is not None:
        return Reading(Outcome.SERVER_ERROR, error_of(part.error))
    outcome = Outcome.OK if part.text else Outcome.EMPTY
    usage, finish, server_id = _about(part.meta_info)
    ids = ids_of(part.output_ids)
    return Reading(
        outcome, usage=usage, finish_reason=finish, text=part.text, server_id=server_id, token_ids=ids
    )


def _read_stream(pieces: Sequence[Piece]) -> Reading:
    split, done, text, counted = read_events(pieces), False, "", 0
    ids: tuple[int, ...] = ()
    stamps, tokens, last = list[int](), list[int](), None
    for event in split.events:
        if event.data == DONE:
            done = True
            continue
        try:
            part = _decoder.decode(event.data)
        except NOT_JSON as error:
            return Reading(Outcome.PROTOCOL, f"an event is not what /generate sends: {error}")
        if part.error is not None:
            return Reading(Outcome.SERVER_ERROR, error_of(part.error), tuple(stamps), tuple(tokens))
        last = part.meta_info or last
        new = ids_of(part.output_ids)
        ids = new if new[: len(ids)] == ids else ids + new
        longer = part.text if part.text.startswith(text) else text + part.text
        total = _about(last)[0].completion_tokens
        if longer != text or (total is not None and total > counted):
            stamps.append(event.stamp_ns)
            tokens.append((total or 0) - counted)
            counted = total or counted
        text = longer
    usage, finish, server_id = _about(last)
    outcome, error_text = stream_outcome(done or bool(finish), split.left)
    if outcome is Outcome.OK and not stamps:
        outcome, error_text = Outcome.EMPTY, "a stream without one token"
    told = usage.completion_tokens is not None and min(tokens, default=0) >= 0
    known = tuple(tokens) if told else ()
    return Reading(
        outcome,
        error_text,
        tuple(stamps),
        known,
        usage,
        finish,
        text,
        server_id=server_id,
        token_ids=ids,
    )


def _about(meta: Meta | None) -> tuple[Usage, str, str]:
    if meta is None:
        return NO_USAGE, "", ""
    reason = meta.finish_reason
    finish = str(reason.get("type", "")) if isinstance(reason, dict) else str(reason or "")
    usage = usage_told(meta.prompt_tokens, meta.completion_tokens, meta.cached_tokens)
    return usage, finish, meta.id or ""
