"""POST /v1/audio/transcriptions: an audio file in, text out, whole or as events.

Options go into the form as they are (language, response_format, …). A stream has OpenAI's events
(`transcript.text.delta`, `.done`) or, as vLLM sends them, chunks of a chat. Audio files are read once, before
the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.load.endpoints.chat import EVENT_STREAM
from layers.collectors.load.endpoints.endpoint import Answer, Body, Reading
from layers.collectors.load.endpoints.openai_stream import read_answer, stream_outcome
from layers.collectors.load.endpoints.sse import Events, read_events
from layers.collectors.load.endpoints.wav import watermarked
from layers.collectors.load.item import Item
from layers.collectors.load.outcomes import error_text
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import NO_USAGE, Outcome, Usage, usage_told
from parsers.errors import UnreadableInput, UsageError
from parsers.not_json import NOT_JSON

BOUNDARY = "perfkit-boundary-7c1f0a5e9b3d4826"
MARK_BYTES = 8


class Counted(msgspec.Struct):
    """`usage`, where it counts tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Part(msgspec.Struct):
    """An event of a stream, or a whole answer."""

    type: str = ""
    delta: str | None = None
    text: str | None = None
    usage: Counted | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(Part)


class Transcriptions:
    """Sends the file that `audio` names."""

    unit = "token"

    def __init__(self, choice: EndpointChoice) -> None:
        self.path = choice.path or "/v1/audio/transcriptions"
        fields = {"model": choice.model} if choice.model else {}
        fields |= {"stream": "true"} if choice.stream else {}
        self._fields = {**fields, **{name: str(value) for name, value in choice.options.items()}}
        self._accept = EVENT_STREAM if choice.stream else ""
        self._files: dict[str, bytes] = {}

    def check(self, items: Iterable[Item]) -> None:
        """Also reads the files."""
        for item in items:
            if not item.audio:
                raise UsageError(f"item {item.id}: transcriptions need an audio file")
            self._file(item.audio)

    def build(self, item: Item, nonce: str) -> Body:
        audio = self._file(item.audio)
        if nonce:
            audio = watermarked(audio, hashlib.sha256(nonce.encode()).digest()[:MARK_BYTES])
        fields = {**self._fields, **{name: str(value) for name, value in item.fields.items()}}
        form = "".join(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        name = Path(item.audio).name.replace('"', "%22")
        file = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        begin = f"{form}{file}Content-Type: application/octet-stream\r\n\r\n".encode()
        end = f"\r\n--{BOUNDARY}--\r\n".encode()
        return Body(begin + audio + end, f"multipart/form-data; boundary={BOUNDARY}", self._accept)

    def read(self, answer: Answer) -> Reading:
        kind = answer.headers.get("content-type", "")
        if "text/event-stream" in kind:
            split = read_events(answer.pieces)
            chat = any(b'"choices"' in event.data for event in split.events)
            return read_answer(answer) if chat else _read_events(split)
        if "json" not in kind:
            return _whole(answer.body.decode(errors="replace"))
        try:
            part = _decoder.decode(answer.body)
        except NOT_JSON as error:
            return Reading(Outcome.PROTOCOL, f"the answer is not what this endpoint answers: {error}")
        if part.error is not None:
            return Reading(Outcome.SERVER_ERROR, error_text(answer.body))
        return _whole(part.text or "", _usage(part))

    def _file(self, path: str) -> bytes:
        if path not in self._files:
            try:
                self._files[path] = Path(path).read_bytes()
            except OSError as error:
                raise UnreadableInput(f"{path}: {error.strerror}") from error
        return self._files[path]


def _whole(text: str, usage: Usage = NO_USAGE) -> Reading:
    outcome = Outcome.OK if text.strip() else Outcome.EMPTY
    return Reading(outcome, text=text, usage=usage)


def _read_events(split: Events) -> Reading:
    stamps, text, usage, done = list[int](), "", NO_USAGE, False
    for event in split.events:
        try:
            part = _decoder.decode(event.data)
        except NOT_JSON as error:
            return Reading(Outcome.PROTOCOL, f"an event is no part of a transcript: {error}", tuple(stamps))
        if part.error is not None or part.type == "error":
            return Reading(Outcome.SERVER_ERROR, error_text(event.data), tuple(stamps), text=text)
        if part.delta:
            stamps.append(event.stamp_ns)
            text += part.delta
        if part.type.endswith(".done"):
            done, text, usage = True, part.text if part.text is not None else text, _usage(part)
    outcome, error_said = stream_outcome(done, split.left)
    if outcome is Outcome.OK and not text.strip():
        outcome, error_said = Outcome.EMPTY, "a transcript without one word"
    return Reading(outcome, error_said, tuple(stamps), usage=usage, text=text)


def _usage(part: Part) -> Usage:
    counted = part.usage or Counted()
    return usage_told(counted.input_tokens, counted.output_tokens)
