"""A piece of a trace's text, decoded into columns.

Two ways to read a piece. *Dense*: all of it is decoded as one JSON array, typed and strict. *Sparse* (busy
ratios only): a search for the literals of device work finds the events that hold one, and only those are
decoded; the rest is never looked at, so damage there goes unseen. A piece that is no valid JSON goes to
`chrome_salvage`, event by event. Sparse reading trusts that the separators it cuts at lie between events: a
piece that holds an array of objects, where they might not, is read densely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parsers.byte_search import find_all
from parsers.chrome_event import EVENTS, EXACT_EVENTS, Event, ExactEvent, require_utf8
from parsers.chrome_layout import NESTED_LIST
from parsers.chrome_numbers import exact_nanoseconds, to_nanoseconds
from parsers.chrome_parts import Parts
from parsers.chrome_rows import Convert, add_rows
from parsers.chrome_salvage import Bearing, salvage
from parsers.not_json import NOT_JSON


class NeedsSequential(Exception):
    """This piece does not begin or end between two events: only reading the file in one go can tell."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the pieces of a file are to be read. Sparse reading picks the events that hold one of the
    `literals` between two `separator`s; `separator` of None means densely. One in `look_every` pieces is
    looked through for arrays of objects: a producer that writes them writes them throughout."""

    busy_only: bool
    separator: bytes | None = None
    literals: tuple[bytes, ...] = ()
    look_every: int = 1


class BlockDecoder:
    """Decodes the pieces that it is given, in any order, into one `Parts`.

    `bearing` says how sure it is where the next piece begins.
    """

    def __init__(self, reading: Reading) -> None:
        self.parts = Parts()
        self.bearing = Bearing.SURE
        self._reading = reading
        self._pieces = 0

    def feed(self, text: bytes, offset: int) -> None:
        """Decode a piece that holds whole events, without the brackets around them.

        Raises NeedsSequential where it turns out not to hold whole events.
        """
        try:
            self.feed_strictly(text, offset)
        except NOT_JSON:
            consumed, ended = self.feed_carefully(text, offset, whole=True)
            if ended or consumed < len(text):
                raise NeedsSequential from None

    def feed_strictly(self, text: bytes, offset: int) -> None:
        """Decode a piece that holds whole events. Raises one of NOT_JSON, and keeps nothing, where it does
        not.
        """
        array = b"[" + (text if self._is_dense(text) else self._pick(text)) + b"]"
        require_utf8(array)
        if not self._add(EVENTS.decode(array), to_nanoseconds, offset):
            self._add(EXACT_EVENTS.decode(array), exact_nanoseconds, offset)
        self.bearing = Bearing.SURE

    def feed_carefully(
        self, text: bytes, offset: int, *, final: bool = False, whole: bool = False
    ) -> tuple[int, bool]:
        """Read what can be read of any text: (bytes used, whether the event array ended in it).

        `final`: nothing follows it; `whole`: it should end between two events.
        """
        saved = salvage(text, offset, final=final, whole=whole, bearing=self.bearing)
        self.bearing = saved.bearing
        if saved.events:
            self._add(saved.events, exact_nanoseconds, offset)
        for loss in saved.losses:
            self.parts.lose(loss)
        return saved.consumed, saved.ended

    def _is_dense(self, text: bytes) -> bool:
        """Whether to decode all of a piece: asked for, or seen to hold an array of objects."""
        if self._reading.separator is None:
            return True
        look = self._pieces % self._reading.look_every == 0
        self._pieces += 1
        found = look and NESTED_LIST.search(text) is not None
        if found and self._reading.look_every > 1:
            raise NeedsSequential
        return found

    def _pick(self, text: bytes) -> bytes:
        return pick_events(text, self._reading.separator or b"", self._reading.literals)

    def _add(self, events: Sequence[Event | ExactEvent], convert: Convert, offset: int) -> bool:
        return add_rows(self.parts, events, convert, offset, self._reading.busy_only)


def pick_events(text: bytes, separator: bytes, literals: tuple[bytes, ...]) -> bytes:
    """The events of a piece that hold one of the literals, joined by commas.

    An event begins at a separator's last byte (its brace) and ends with the first byte of the next separator.
    """
    picked: list[bytes] = []
    find, find_back, lead = text.find, text.rfind, len(separator) - 1
    end = 0
    for at in find_all(text, literals):
        if at >= end:
            before = find_back(separator, end - 1 if end else 0, at)
            after = find(separator, at)
            end = after + 1 if after >= 0 else len(text)
            picked.append(text[before + lead if before >= 0 else 0 : end])
    return b",".join(picked)
