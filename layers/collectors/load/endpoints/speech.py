"""POST /v1/audio/speech: text in, audio out, whole, as raw bytes while it is made, or as events.

Audio begins behind the header: an event is a piece that holds samples. Options: `pcm_rate_hz` and
`pcm_frame_bytes` for answers that are bare samples (24,000 and 2 are OpenAI's); all others go into the
request (voice, response_format, stream_format, …).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from layers.collectors.load.endpoints.chat import marked
from layers.collectors.load.endpoints.endpoint import Answer, Body, Piece, Reading, Sound
from layers.collectors.load.endpoints.openai_stream import DONE, error_of, stream_outcome
from layers.collectors.load.endpoints.player import underrun_s
from layers.collectors.load.endpoints.sse import read_events
from layers.collectors.load.item import Item
from layers.collectors.load.outcomes import error_text
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import Audio, Outcome
from parsers.errors import UsageError
from parsers.not_json import NOT_JSON
from parsers.wav import read_wav_head, samples_of

PCM_RATE_HZ, PCM_FRAME_BYTES = 24_000, 2
"""OpenAI's `pcm`: 24 kHz, 16 bit, mono."""
BARE_SAMPLES = ("pcm", "octet-stream", "event-stream")
"""Content types, or parts of them, of samples without a header."""
OURS = frozenset({"pcm_rate_hz", "pcm_frame_bytes"})


class AudioEvent(msgspec.Struct):
    """An event of a stream: audio in base64, under the names that OpenAI and SGLang-Omni give it."""

    type: str = ""
    audio: str | None = None
    data: str | None = None
    error: Any = None


class Speech:
    """Sends `text`."""

    unit = "audio"

    def __init__(self, choice: EndpointChoice) -> None:
        self.path = choice.path or "/v1/audio/speech"
        options = choice.options
        self._rate_hz = int(options.get("pcm_rate_hz", PCM_RATE_HZ))
        self._frame_bytes = int(options.get("pcm_frame_bytes", PCM_FRAME_BYTES))
        self._fixed = {name: value for name, value in options.items() if name not in OURS}
        self._fixed |= {"model": choice.model} if choice.model else {}
        self._fixed |= {"stream": True} if choice.stream else {}

    def check(self, items: Iterable[Item]) -> None:
        for item in items:
            if not item.text:
                raise UsageError(f"item {item.id}: speech needs a text")

    def build(self, item: Item, nonce: str) -> Body:
        """A nonce is said aloud: it lengthens every answer alike."""
        text = marked(item.text, nonce) if nonce else item.text
        return Body(msgspec.json.encode({**self._fixed, **item.fields, "input": text}))

    def read(self, answer: Answer) -> Reading:
        kind = answer.headers.get("content-type", "")
        if "application/json" in kind:
            return Reading(Outcome.SERVER_ERROR, error_text(answer.body))
        if "text/event-stream" not in kind:
            if kind.startswith("text/") or "xml" in kind:
                return Reading(Outcome.PROTOCOL, f"what came is {kind}, no audio")
            return self._read_audio(answer.pieces, kind)
        pieces, outcome, error = _decoded(answer.pieces)
        reading = self._read_audio(pieces, kind)
        return reading if outcome is Outcome.OK else replace(reading, outcome=outcome, error=error)

    def _read_audio(self, pieces: Sequence[Piece], kind: str) -> Reading:
        body = b"".join(piece.data for piece in pieces)
        head = read_wav_head(body)
        if head is not None:
            sound = Sound(samples_of(body, head), head.dtype, head.channels, head.sample_rate_hz)
            return _reading(pieces, body, head.data_at, sound, head.bytes_per_s)
        if body[:4] == b"RIFF"[: len(body)]:
            return Reading(Outcome.EMPTY, "a WAV header that is not whole")
        rate_hz = self._rate_hz if any(bare in kind for bare in BARE_SAMPLES) else 0
        bare = Sound(body, f"<i{self._frame_bytes}" if rate_hz else "u1", 1, rate_hz or None)
        return _reading(pieces, body, 0, bare, rate_hz * self._frame_bytes)


def _reading(pieces: Sequence[Piece], body: bytes, start: int, sound: Sound, per_s: int) -> Reading:
    heard = _behind(pieces, start)
    if not heard:
        return Reading(Outcome.EMPTY, "an answer without one sample")
    samples = body[start:]
    stamps = tuple(piece.stamp_ns for piece in heard)
    late_s = underrun_s(stamps, [len(piece.data) / per_s for piece in heard]) if per_s else None
    seconds = len(samples) / per_s if per_s else None
    sha256 = hashlib.sha256(samples).hexdigest()
    audio = Audio(seconds, sound.rate_hz, len(samples), sha256, late_s)
    return Reading(Outcome.OK, event_ns=stamps, audio=audio, sound=sound)


def _behind(pieces: Sequence[Piece], start: int) -> list[Piece]:
    """What of the pieces lies behind the first `start` bytes."""
    kept, at = [], 0
    for stamp_ns, data in pieces:
        rest = data[max(0, start - at) :]
        at += len(data)
        if rest:
            kept.append(Piece(stamp_ns, rest))
    return kept


def _decoded(pieces: Sequence[Piece]) -> tuple[list[Piece], Outcome, str]:
    """The audio of all events, and whether the stream came to its end."""
    audio, split, done = list[Piece](), read_events(pieces), False
    for event in split.events:
        if event.data == DONE:
            done = True
            continue
        try:
            part = msgspec.json.decode(event.data, type=AudioEvent)
            data = base64.b64decode(part.audio or part.data or "", validate=True)
        except (*NOT_JSON, binascii.Error) as error:
            return audio, Outcome.PROTOCOL, f"an event holds no audio: {error}"
        if part.error is not None:
            return audio, Outcome.SERVER_ERROR, error_of(part.error)
        done |= part.type.endswith(".done")
        if data:
            audio.append(Piece(event.stamp_ns, data))
    return audio, *stream_outcome(done, split.left)
