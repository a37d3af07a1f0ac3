"""What one request was answered, as bytes that can be compared: the record that readers of outputs give.

Everything is raw bytes with what they are: two outputs are the same where bytes, type and shape are. Numbers
are never compared as numbers here, since NaN differs from itself and -0.0 equals 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from parsers.loss import Loss


class Kind(StrEnum):
    """What a payload is."""

    TEXT = "text"
    TOKENS = "tokens"
    """ids, int64"""
    CODES = "codes"
    """rows of codes, int64"""
    PCM = "pcm"
    """decoded samples of sound, without a header"""
    ARRAY = "array"
    """anything else that has a type and a shape"""


TEXT_DTYPE, INT24 = "utf-8", "<i3"
"""Types that numpy has no name for: text, and samples of 24 bits."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One output. `dtype` as numpy names it ("utf-8" for text); `shape` counts its elements: characters of
    text are found by decoding, so that of text is its bytes, that of PCM (frames, channels)."""

    kind: Kind
    data: bytes = field(repr=False)
    dtype: str
    shape: tuple[int, ...]
    rate_hz: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One sample: what was answered to one item in one cell of the grid.

    `error` says how it failed, empty where it was answered. `tokens` is how many the server counted. Several
    payloads are several views of one answer (its text and its ids).
    """

    item: str
    cell: str = ""
    repeat: int = 0
    payloads: tuple[Payload, ...] = ()
    finish_reason: str = ""
    error: str = ""
    expected: str = ""
    tokens: int | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What names it: the same in both arms."""
        return self.cell, self.item, self.repeat

    def payload(self, kind: Kind) -> Payload | None:
        return next((one for one in self.payloads if one.kind is kind), None)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file that was read: where it is, what it is known by, its samples, and what of it was lost."""

    path: str
    sha256: str
    size_bytes: int
    outputs: tuple[Output, ...]
    losses: tuple[Loss, ...] = ()


def text_payload(text: str) -> Payload:
    """Text as it stands: nothing is normalised. Lone surrogates, which JSON may hold, are kept apart."""
    data = text.encode("utf-8", "surrogatepass")
    return Payload(Kind.TEXT, data, TEXT_DTYPE, (len(data),))
