"""A mark in sound that no ear hears: the same sound with bytes of its own."""

from __future__ import annotations

from parsers.wav import read_wav_head


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
