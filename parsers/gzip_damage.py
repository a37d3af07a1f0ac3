"""The text of a damaged gzip member up to the damage, byte by byte near it.

An inflater that meets damage throws away all that it had made in the same call, with the fast library up to
a whole piece. This reads the member again with the standard one in small steps, each from a saved state, and
the step that fails once more a byte at a time. Slow, and used for nothing but damaged files.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from parsers.regular_file import open_regular

GZIP_WBITS = 31
STEP_BYTES = 4 << 10
"""Of packed input: small, since each step may inflate a thousandfold."""


def text_before_damage(path: str, member_at: int, skip_bytes: int) -> Iterator[bytes]:
    """What the member that begins at file offset `member_at` holds, without the first `skip_bytes`."""
    for text in _inflate_until_damage(path, member_at):
        fresh = text[skip_bytes:]
        skip_bytes -= len(text) - len(fresh)
        if fresh:
            yield fresh


def _inflate_until_damage(path: str, member_at: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(wbits=GZIP_WBITS)
    with open_regular(path) as file:
        file.seek(member_at)
        while (packed := file.read(STEP_BYTES)) and not inflater.eof:
            before = inflater.copy()
            try:
                text = inflater.decompress(packed)
            except zlib.error:
                yield _byte_by_byte(before, packed)
                return
            yield text


def _byte_by_byte(inflater: zlib._Decompress, packed: bytes) -> bytes:
    text = bytearray()
    for at in range(len(packed)):
        try:
            text += inflater.decompress(packed[at : at + 1])
        except zlib.error:
            break
    return bytes(text)
