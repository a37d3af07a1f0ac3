"""Read a trace in one process, piece after piece: small files, and every file that is not laid out as it
should be.

A piece ends at the last cut in what was read so far. Where a piece turns out to end inside an event, that
event is carried over and completed by the next read, so that nothing depends on where the cuts fell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parsers.chrome_block import NOT_JSON, BlockDecoder, Reading
from parsers.chrome_columns import Parts
from parsers.chrome_layout import explain_no_events, find_events, last_boundary
from parsers.chrome_salvage import EVENT_LIMIT_BYTES, balanced_end
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.text_stream import TextStream

PIECE_BYTES = 4 << 20
HEAD_LIMIT_BYTES = 64 << 20
FOOTER_LIMIT_BYTES = 16 << 20


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
        if len(more) == len(head) or len(head) > HEAD_LIMIT_BYTES:
            raise explain_no_events(path, head)
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
    """What was decoded, the text behind the event array, and how many bytes of text there were."""

    parts: Parts
    after: bytes
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
        text = grown
        consumed, ended = _take_piece(decoder, text, offset, final)
        offset += consumed
        text = text[consumed:]
        progress(offset)
        if ended:
            return _end(decoder.parts, stream, text[1:], offset + 1)
        if final:
            _note_open_end(decoder.parts, text, offset)
            return Ending(decoder.parts, b"", offset + len(text))


def _take_piece(decoder: BlockDecoder, text: bytes, offset: int, final: bool) -> tuple[int, bool]:
    """Decode as much of the text as holds whole events: (bytes used, whether the array ended)."""
    cut = last_boundary(text)
    end, next_event = cut or (0, 0)
    if final and (closed := balanced_end(text, next_event)) is not None:
        end = next_event = closed
    if end:
        try:
            decoder.feed_strictly(text[:end], offset)
        except NOT_JSON:
            return decoder.feed_damaged(text, offset, final)
    rest = text[next_event:].lstrip()
    if rest.startswith(b"]"):
        return len(text) - len(rest), True
    if final and rest.strip(b" \t\r\n,"):
        used, ended = decoder.feed_damaged(rest, offset + len(text) - len(rest), final)
        return len(text) - len(rest) + used, ended
    if not end and len(text) > 2 * EVENT_LIMIT_BYTES:
        return decoder.feed_damaged(text, offset, final)
    return next_event, False


def _end(parts: Parts, stream: TextStream, after: bytes, offset: int) -> Ending:
    """Read what stands behind the array: kept within a limit, counted without one."""
    text_bytes = offset + len(after)
    after = after[:FOOTER_LIMIT_BYTES]
    while data := stream.read(PIECE_BYTES):
        text_bytes += len(data)
        after += data[: FOOTER_LIMIT_BYTES - len(after)]
    return Ending(parts, after, text_bytes)


def _note_open_end(parts: Parts, text: bytes, offset: int) -> None:
    if not parts.counts and not text.strip():
        raise UnreadableInput("the event array is cut before its first event: nothing can be read")
    what = "the event array has no closing bracket: the file may be cut"
    parts.losses.append(Loss(what, offset + len(text), len(text.strip()), 0, True))
