"""Samples in WAV files and streams: where they begin, what they are, and how many bytes are a second.

Servers write a header before they know how long the sound will be: its sizes are then 0 or all ones, and the
samples are what follows it. So a header is read here as it stands, and a length in it is believed only where
the bytes are there. Nothing is decoded: bytes that are to be compared stay bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

RIFF_HEAD = 12
CHUNK_HEAD = 8
FORMAT_BYTES = 16
SUBFORMAT_AT = 24
INTEGER, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
"""Formats that are plain samples; the extensible one names one of the others (RFC 2361; mmreg.h)."""
BITS = frozenset({8, 16, 24, 32, 64})
"""Of a sample, whole bytes of it."""
UNKNOWN_BYTES = frozenset({0, 0xFFFFFFFF, 0x7FFFFFFF})
"""Sizes in headers of streams whose length nobody knew."""


class WavHead(NamedTuple):
    """What a header says: where in the bytes the samples begin, how many bytes they take (None: not told),
    and what they are."""

    data_at: int
    data_bytes: int | None
    sample_rate_hz: int
    channels: int
    bits: int
    is_float: bool

    @property
    def bytes_per_s(self) -> int:
        return self.sample_rate_hz * self.channels * (self.bits // 8)

    @property
    def dtype(self) -> str:
        """As numpy names it; 24 bits, which numpy has no name for, by the same rule."""
        if self.is_float:
            return f"<f{self.bits // 8}"
        return "u1" if self.bits == 8 else f"<i{self.bits // 8}"


def read_wav_head(data: bytes) -> WavHead | None:
    """The header at the beginning of the data; None where there is none, or not all of it is there."""
    if data[:4] not in (b"RIFF", b"RF64") or data[8:RIFF_HEAD] != b"WAVE":
        return None
    at, found = RIFF_HEAD, None
    while at + CHUNK_HEAD <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        begin = at + CHUNK_HEAD
        if name == b"data":
            told = None if size in UNKNOWN_BYTES else size
            return found._replace(data_at=begin, data_bytes=told) if found else None
        if name == b"fmt " and begin + FORMAT_BYTES <= len(data):
            found = _format(data, begin, size)
        at = begin + size + size % 2
    return None


def samples_of(data: bytes, head: WavHead) -> bytes:
    """The bytes of the samples, without what follows them."""
    end = len(data) if head.data_bytes is None else head.data_at + head.data_bytes
    return data[head.data_at : end]


def _format(data: bytes, at: int, size: int) -> WavHead | None:
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
    if kind == EXTENSIBLE and size > SUBFORMAT_AT and at + SUBFORMAT_AT + 2 <= len(data):
        (kind,) = struct.unpack_from("<H", data, at + SUBFORMAT_AT)
    if kind not in (INTEGER, FLOAT, EXTENSIBLE) or not rate or not channels or bits not in BITS:
        return None
    return WavHead(0, None, rate, channels, bits, kind == FLOAT)
