"""Answers in OpenAI's shapes: chunks of a stream, and whole answers, of chat and of completions.

A chunk is an event if it carries output of any kind: text, reasoning, a refusal or a tool call. What only
opens a role, closes the stream or counts tokens is none. A stream is whole where it says [DONE] or gives the
reason why it finished.
"""

from __future__ import annotations

from typing import Any

import msgspec

from layers.collectors.load.endpoints.endpoint import Answer, Reading, ids_of
from layers.collectors.load.endpoints.sse import read_events
from layers.collectors.load.records import NO_USAGE, Outcome, Usage, usage_told
from parsers.not_json import NOT_JSON

DONE = b"[DONE]"


class PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Tokens(msgspec.Struct):
    """`usage`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None


class Content(msgspec.Struct):
    """`delta` of a chunk, `message` of a whole answer. Reasoning goes by two names."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class Choice(msgspec.Struct):
    delta: Content | None = None
    message: Content | None = None
    text: str | None = None
    finish_reason: str | None = None
    token_ids: Any = None


class Chunk(msgspec.Struct):
    """A chunk or a whole answer of either endpoint."""

    id: str | None = None
    choices: list[Choice] = msgspec.field(default_factory=list)
    usage: Tokens | None = None
    error: Any = None
    object: str | None = None


_decoder = msgspec.json.Decoder(Chunk)


class Collected:
    """What the chunks of one answer come to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.event_ns: list[int] = []
        self.counts: list[int] = []
        self.token_ids: list[int] = []
        self.usage = NO_USAGE
        self.finish_reason = self.server_id = ""
        self.done = self.output = False

    def take(self, chunk: Chunk, stamp_ns: int) -> None:
        self.server_id = self.server_id or chunk.id or ""
        if chunk.usage is not None:
            self.usage = usage_of(chunk.usage)
        output = False
        for choice in chunk.choices:
            self.finish_reason = choice.finish_reason or self.finish_reason
            output |= self._take_content(choice)
        if output:
            self.output = True
            self.event_ns.append(stamp_ns)
            if chunk.usage is not None and self.usage.completion_tokens is not None:
                self.counts.append(self.usage.completion_tokens)

    def _take_content(self, choice: Choice) -> bool:
        content = choice.delta or choice.message or Content()
        text = choice.text or content.content or content.refusal or ""
        self.texts.append(text)
        self.token_ids += ids_of(choice.token_ids)
        return bool(text or content.reasoning_content or content.reasoning or content.tool_calls)

    def reading(self, outcome: Outcome, error: str = "", *, streamed: bool) -> Reading:
        return Reading(
            outcome=outcome,
            error=error,
            event_ns=tuple(self.event_ns) if streamed else (),
            event_tokens=self._event_tokens() if streamed else (),
            usage=self.usage,
            finish_reason=self.finish_reason,
            text="".join(self.texts),
            server_id=self.server_id,
            token_ids=tuple(self.token_ids),
        )

    def _event_tokens(self) -> tuple[int, ...]:
        """Tokens of each event, where every one of them came with a running count, and none fell."""
        told = tuple(b - a for a, b in zip([0, *self.counts], self.counts, strict=False))
        return told if len(told) == len(self.event_ns) and min(told, default=0) >= 0 else ()


def read_answer(answer: Answer) -> Reading:
    """A stream or a whole answer, by what its content type says it is."""
    if "text/event-stream" in answer.headers.get("content-type", ""):
        return _read_stream(answer)
    collected = Collected()
    try:
        chunk = _decoder.decode(answer.body)
    except NOT_JSON as error:
        return Reading(Outcome.PROTOCOL, f"the answer is not what this endpoint answers: {error}")
    if chunk.error is not None:
        return Reading(Outcome.SERVER_ERROR, error_of(chunk.error))
    collected.take(chunk, 0)
    return collected.reading(Outcome.OK if collected.output else Outcome.EMPTY, streamed=False)


def _read_stream(answer: Answer) -> Reading:
    collected, split = Collected(), read_events(answer.pieces)
    for event in split.events:
        if event.data == DONE:
            collected.done = True
            continue
        try:
            chunk = _decoder.decode(event.data)
        except NOT_JSON as error:
            return collected.reading(Outcome.PROTOCOL, f"an event is no chunk: {error}", streamed=True)
        if chunk.error is not None or event.name == b"error":
            what = error_of(chunk.error) if chunk.error is not None else event.data.decode(errors="replace")
            return collected.reading(Outcome.SERVER_ERROR, what, streamed=True)
        collected.take(chunk, event.stamp_ns)
    outcome, lack = stream_outcome(collected.done or bool(collected.finish_reason), split.left)
    if outcome is Outcome.OK and not collected.output:
        return collected.reading(Outcome.EMPTY, "a stream without one token", streamed=True)
    return collected.reading(outcome, lack, streamed=True)


def stream_outcome(whole: bool, left: bytes) -> tuple[Outcome, str]:
    """OK where the stream says that it is whole, else what it lacks."""
    if whole:
        return Outcome.OK, ""
    if left.strip():
        return Outcome.TRUNCATED, "the stream ends within an event"
    return Outcome.TRUNCATED, "the stream ends without [DONE] and without a finish reason"


def usage_of(tokens: Tokens) -> Usage:
    details = tokens.prompt_tokens_details
    cached = details.cached_tokens if details else None
    return usage_told(tokens.prompt_tokens, tokens.completion_tokens, cached)


def error_of(value: Any) -> str:
    """The message of an error object, or the object."""
    if isinstance(value, dict):
        return str(value.get("message") or value)
    return str(value)
