"""PCM in WAV files and streams: where the samples begin, and how many bytes are a second."""

from __future__ import annotations

import struct
from typing import NamedTuple

RIFF_HEAD = 12
CHUNK_HEAD = 8
PCM_FORMATS = frozenset({1, 3, 0xFFFE})
"""Integer, float, and extensible, whose subformat is one of these in practice (RFC 2361; mmreg.h)."""


class Wav(NamedTuple):
    """What a header says: where in the bytes the samples begin, and what they are."""

    data_at: int
    sample_rate_hz: int
    bytes_per_s: int
    bits: int


def read_wav_head(data: bytes) -> Wav | None:
    """The header at the beginning of the data; None where there is none, or not all of it is there."""
    if data[:4] not in (b"RIFF", b"RF64") or data[8:RIFF_HEAD] != b"WAVE":
        return None
    at, found = RIFF_HEAD, None
    while at + CHUNK_HEAD <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        if name == b"data":
            return found._replace(data_at=at + CHUNK_HEAD) if found else None
        if name == b"fmt " and at + CHUNK_HEAD + 16 <= len(data):
            kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at + CHUNK_HEAD)
            if kind in PCM_FORMATS and rate and channels and bits >= 8:
                found = Wav(0, rate, rate * channels * (bits // 8), bits)
        at += CHUNK_HEAD + size + size % 2
    return None


def watermarked(data: bytes, nonce: bytes) -> bytes:
    """The same sound with other bytes: the low bits of its last samples hold the nonce, so that no cache that
    is keyed by content knows it. Unchanged where it is no PCM, or too short to hold it."""
    head = read_wav_head(data)
    if head is None or head.bits != 16:
        return data
    places = range(head.data_at + (len(data) - head.data_at) // 2 * 2 - 2 * 8 * len(nonce), len(data) - 1, 2)
    if places.start < head.data_at:
        return data
    marked = bytearray(data)
    for number, place in enumerate(places):
        bit = nonce[number // 8] >> (number % 8) & 1
        marked[place] = marked[place] & 0xFE | bit
    return bytes(marked)
