"""Read a trace in one process, piece after piece: small files, and every file that is not laid out as it
should be.

A piece ends at the last cut in what was read so far. Where a piece turns out to end inside an event, that
event is carried over and completed by the next read, so that nothing depends on where the cuts fell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parsers.chrome_around import AROUND_LIMIT_BYTES
from parsers.chrome_block import BlockDecoder, Reading
from parsers.chrome_layout import explain_no_events, find_events, last_boundary
from parsers.chrome_parts import Parts
from parsers.chrome_salvage import EVENT_LIMIT_BYTES, Bearing
from parsers.loss import Loss
from parsers.not_json import NOT_JSON
from parsers.text_stream import TextStream

PIECE_BYTES = 2 << 20
"""Small enough that a piece and its copies stay in the processor's cache, large enough to be worth a call."""


@dataclass(slots=True)
class Beginning:
    """The text before the event array, the first text of the array, and the offset of the latter."""

    before: bytes
    rest: bytes
    offset: int


def read_beginning(path: str, stream: TextStream) -> Beginning:
    """Read up to the event array. Raises UnreadableInput where the file has none."""
    head = fill(stream, b"", PIECE_BYTES)
    while (found := find_events(head)) is None:
        more = fill(stream, head, len(head) + PIECE_BYTES)
        whole = len(more) == len(head)
        if whole or len(head) > AROUND_LIMIT_BYTES:
            raise explain_no_events(path, head, whole)
        head = more
    at, before = found
    return Beginning(before, head[at:], at)


def fill(stream: TextStream, text: bytes, size: int) -> bytes:
    """The text, grown by reading to `size` bytes or to the end of the stream."""
    pieces, missing = [text], size - len(text)
    while missing > 0 and (data := stream.read(missing)):
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)


@dataclass(slots=True)
class Ending:
    """What was decoded, the text behind the event array (cut at AROUND_LIMIT_BYTES; None: the array was
    never closed) and its offset, and how many bytes of text there were.
    """

    parts: Parts
    after: bytes | None
    after_offset: int
    text_bytes: int


def read_sequentially(
    stream: TextStream, beginning: Beginning, reading: Reading, progress: Callable[[int], None]
) -> Ending:
    """Decode everything from the beginning of the event array on."""
    decoder = BlockDecoder(reading)
    text, offset = beginning.rest, beginning.offset
    while True:
        grown = fill(stream, text, len(text) + PIECE_BYTES)
        final = len(grown) < len(text) + PIECE_BYTES
        used, ended = _take_piece(decoder, grown, offset, final)
        text, offset = grown[used:], offset + used
        progress(offset)
        if ended:
            return _read_behind(decoder.parts, stream, text[1:], offset + 1)
        if final:
            what = "the event array has no closing bracket: the file may be cut"
            whole = not beginning.before and decoder.bearing is Bearing.SURE  # a bare array may end like this
            decoder.parts.lose(Loss(what, offset, 0, 0, True, rest_is_missing=not whole))
            return Ending(decoder.parts, None, offset, offset)


def _take_piece(decoder: BlockDecoder, text: bytes, offset: int, final: bool) -> tuple[int, bool]:
    """Decode as much of the text as holds whole events: (bytes used, whether the array ended)."""
    cut = last_boundary(text)
    astray = decoder.bearing is Bearing.ASTRAY
    if cut is None or astray:
        if not (final or astray or len(text) > 2 * EVENT_LIMIT_BYTES):
            return 0, False
        return decoder.feed_carefully(text, offset, final=final)
    end, next_event = cut
    try:
        decoder.feed_strictly(text[:end], offset)
    except NOT_JSON:
        if final:
            return decoder.feed_carefully(text, offset, final=True)
        used, ended = decoder.feed_carefully(text[:end], offset, whole=True)
        return (next_event if used == end and not ended else used), ended
    if not final:
        return next_event, False
    used, ended = decoder.feed_carefully(text[next_event:], offset + next_event, final=True)
    return next_event + used, ended


def _read_behind(parts: Parts, stream: TextStream, after: bytes, offset: int) -> Ending:
    """Read what stands behind the array: kept within a limit, counted without one."""
    text_bytes = offset + len(after)
    after = after[:AROUND_LIMIT_BYTES]
    while data := stream.read(PIECE_BYTES):
        text_bytes += len(data)
        after += data[: AROUND_LIMIT_BYTES - len(after)]
    return Ending(parts, after, offset, text_bytes)
