"""Server-sent events out of the pieces of an answer, each with the time of the read that completed it.

As the WHATWG HTML standard has it (9.2.6): lines end with CR LF, LF or CR, an event with an empty line, lines
that begin with a colon are comments, several data lines are joined by a line feed, and an event that its
stream does not complete is none; `left` then says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from layers.collectors.load.endpoints.endpoint import Piece

LINE_END = re.compile(rb"\r\n|\n|\r")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: when its last byte came, its name ("" where it has none), its data."""

    stamp_ns: int
    name: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Events:
    """All complete events that hold data, and what stood after the last one."""

    events: tuple[Event, ...]
    left: bytes


def read_events(pieces: Sequence[Piece]) -> Events:
    """Split a stream; cut anywhere, it gives the same events with other stamps."""
    body = b"".join(piece.data for piece in pieces)
    start = len(BYTE_ORDER_MARK) if body.startswith(BYTE_ORDER_MARK) else 0
    ends = list(accumulate(len(piece.data) for piece in pieces))
    events, left_at = [], start
    name, data = b"", list[bytes]()
    for line, after in _lines(body, start):
        if line:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
            continue
        if data:
            stamp_ns = pieces[bisect_left(ends, after)].stamp_ns
            events.append(Event(stamp_ns, name, b"\n".join(data)))
        name, data, left_at = b"", [], after
    return Events(tuple(events), body[left_at:])


def _lines(body: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    """Each line without its end, and where the next one begins; a last line without an end is none."""
    for end in LINE_END.finditer(body, start):
        yield body[start : end.start()], end.end()
        start = end.end()
