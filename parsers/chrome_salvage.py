"""Read trace text event by event where it is not what it should be, and say what was lost.

As many whole events as possible are decoded at once, strictly, as long as that works. Where it does not, one
event is taken by itself, in order of trust: up to its own closing brace, strictly (its arguments may hold
things that look like events); up to there, or to where the next event seems to begin, after repair. What is
left is lost, with its offset and size, and reading goes on at the next beginning.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from parsers.chrome_event import EXACT_EVENTS, ExactEvent, require_utf8
from parsers.chrome_layout import BOUNDARY, EVENT_START, SPACE, STRAY_BRACKET
from parsers.chrome_lenient import repaired_events
from parsers.chrome_lost import events_in, may_hold_device_work, speaks_for_itself
from parsers.loss import Loss
from parsers.not_json import NOT_JSON

EVENT_LIMIT_BYTES = 8 << 20
"""No event is longer: text without an end by then is damage. The longest real one seen is under 1 MB."""
REPAIR_LIMIT_BYTES = 1 << 20
SCANS_PER_BYTE = 4
SHORT_SCAN_BYTES = 1 << 16

LOST = "text that could not be read"
REPAIRED = "events with broken text or fields of a wrong type: repaired"
NO_EVENTS = "elements of the event array that are no events: left out"
SEPARATORS = "commas missing or too many between events: repaired"

_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}"]', re.DOTALL)
"""Strings, braces, and a quote that opens a string without end."""
_SEPARATING = b" \t\r\n,"
_BETWEEN = re.compile(rb"[%s]*" % _SEPARATING)
_SCALAR = rb'null|true|false|[-+.\deE]+|"(?:[^"\\]++|\\.)*+"|\[\]'
_NO_OBJECT = re.compile(rb"(?:%s)(?=%s[,\]])" % (_SCALAR, SPACE), re.DOTALL)


class Bearing(Enum):
    """How sure it is where in the structure of the file a text begins."""

    SURE = auto()
    """between two events"""
    UNSURE = auto()
    """behind something that was no event: a closing bracket may be part of that"""
    ASTRAY = auto()
    """inside something lost"""


@dataclass(slots=True)
class Salvage:
    """Events in file order, what was lost, how far the text was used, whether the event array ended there,
    and how sure the beginning of what follows is.
    """

    events: list[ExactEvent] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    consumed: int = 0
    ended: bool = False
    bearing: Bearing = Bearing.SURE


def salvage(
    text: bytes, offset: int, *, final: bool, whole: bool, bearing: Bearing = Bearing.SURE
) -> Salvage:
    """Read the text, which begins as `bearing` says.

    `final`: nothing follows it. `whole`: it ends between two events, as far as one can see. Otherwise an
    event that may go on in the next text is left unconsumed.
    """
    return _Reader(text, offset, final, whole, bearing).read()


class _Reader:
    def __init__(self, text: bytes, offset: int, final: bool, whole: bool, bearing: Bearing) -> None:
        self._text, self._offset, self._final, self._whole = text, offset, final, whole
        cuts = [(match.start() + 1, match.end()) for match in BOUNDARY.finditer(text)]
        if whole:
            cuts.append((len(text), len(text)))
        self._ends, self._starts = [end for end, _ in cuts], [start for _, start in cuts]
        self._group = 1
        self._scan_budget_bytes = SCANS_PER_BYTE * len(text)
        self._at = 0
        self._saved = Salvage(bearing=bearing)

    def read(self) -> Salvage:
        if self._saved.bearing is Bearing.ASTRAY:
            self._lose(0, self._starts[0] if self._starts else len(self._text))
        else:
            self._cross(expected_commas=0)
        while self._at < len(self._text) and self._take():
            pass
        self._saved.consumed = self._at
        return self._saved

    def _take(self) -> bool:
        """Consume what stands next. False where the array ends, or where it may continue in the next text."""
        first = self._text[self._at]
        if first == ord("]"):
            return self._take_bracket()
        if first != ord("{"):
            return self._take_junk()
        return self._take_group() or self._take_event()

    def _take_bracket(self) -> bool:
        """The end of the array, or damage: what other events follow, at once or, after damage, anywhere."""
        at, text = self._at, self._text
        unsure = self._saved.bearing is not Bearing.SURE
        undecided = unsure or not text[at + 1 :].strip(_SEPARATING)
        if STRAY_BRACKET.match(text, at) or (unsure and EVENT_START.search(text, at)):
            return self._take_junk()
        if undecided and self._may_wait(at):
            return False
        self._saved.ended = True
        return False

    def _take_group(self) -> bool:
        """Several whole events at once, twice as many as the last time that worked, half as many if not."""
        first = bisect_right(self._ends, self._at)
        while (last := min(first + self._group, len(self._ends)) - 1) >= first:
            if self._accept(self._at, self._ends[last]):
                self._at, self._group = self._starts[last], 2 * self._group
                return True
            if self._group == 1:
                return False
            self._group = min(self._group, last - first + 1) // 2 or 1
        return False

    def _take_event(self) -> bool:
        start, cut = self._at, self._next_cut()
        own_end, broken = self._scan(cut)
        may_go_on = own_end is None and not broken
        if own_end is not None and cut is None:
            may_go_on = not self._text[own_end:].strip(_SEPARATING)
        if may_go_on and self._may_wait(start):
            return False
        if own_end is not None and self._accept(start, own_end):
            self._at = own_end
            self._cross()
            return True
        if cut is None and self._may_wait(start):
            return False
        stops = sorted({stop for stop in (own_end, cut) if stop is not None} or {len(self._text)})
        if not any(self._repair(start, stop) for stop in stops):
            self._lose(start, cut if cut is not None else stops[0])
        return True

    def _next_cut(self) -> int | None:
        """The end of the event that stands here, as far as the beginning of the next one tells."""
        index = bisect_right(self._ends, self._at)
        return self._ends[index] if index < len(self._ends) else None

    def _may_wait(self, start: int) -> bool:
        """Whether more text may tell what this is."""
        return not self._final and len(self._text) - start < EVENT_LIMIT_BYTES

    def _repair(self, start: int, stop: int) -> bool:
        repaired = repaired_events(self._text[start:stop]) if stop - start < REPAIR_LIMIT_BYTES else None
        if repaired is None:
            return False
        self._saved.events += repaired.events
        self._note(REPAIRED, start, repaired.lost_bytes, repaired.in_doubt)
        self._at = stop
        self._cross()
        return True

    def _take_junk(self) -> bool:
        """Something between events that is none."""
        start, text = self._at, self._text
        if match := _NO_OBJECT.match(text, start):
            self._note(NO_EVENTS, start, match.end() - start)
            self._at, self._saved.bearing = match.end(), Bearing.UNSURE
            self._cross()
            return True
        event = EVENT_START.search(text, start)
        if event is None and not self._whole and self._may_wait(start):
            return False
        bracket = text.find(b"]", start + 1) if self._final else -1
        self._lose(start, event.start() if event else bracket if bracket >= 0 else len(text))
        return True

    def _scan(self, cut: int | None) -> Scan:
        """Find the event's own end, looking behind the `cut` only where it lies in the event's arguments;
        within a budget, so that a file of nothing but damage is not scanned over and over.
        """
        if cut is not None:
            scan = scan_event(self._text, self._at, cut)
            if scan.end is not None or scan.in_string:
                return scan
        limit = EVENT_LIMIT_BYTES if self._scan_budget_bytes > 0 else SHORT_SCAN_BYTES
        stop = min(self._at + limit, len(self._text))
        scan = scan_event(self._text, self._at, stop)
        self._scan_budget_bytes -= (scan.end or stop) - self._at
        return Scan(scan.end, False)

    def _accept(self, start: int, end: int) -> bool:
        event = self._text[start:end]
        try:
            require_utf8(event)
            self._saved.events += EXACT_EVENTS.decode(b"[" + event + b"]")
        except NOT_JSON:
            return False
        self._saved.bearing = Bearing.SURE
        return True

    def _cross(self, expected_commas: int = 1) -> None:
        """Go on to what stands behind an event, past its comma."""
        start, self._at = self._at, _skip(_BETWEEN, self._text, self._at)
        last = self._text[self._at : self._at + 1] in (b"", b"]")
        if self._text.count(b",", start, self._at) != (0 if last else expected_commas):
            self._note(SEPARATORS, start)

    def _note(self, what: str, at: int, lost_bytes: int = 0, hides: bool = False) -> None:
        self._saved.losses.append(Loss(what, self._offset + at, lost_bytes, 0, hides))

    def _lose(self, start: int, end: int) -> None:
        """Give up a text; where it goes on from one that was lost before, its first event was counted."""
        lost = self._text[start:end].rstrip(_SEPARATING)
        events = events_in(lost) - (self._saved.bearing is Bearing.ASTRAY)
        hides, torn = may_hold_device_work(lost), not speaks_for_itself(lost)
        self._saved.losses.append(Loss(LOST, self._offset + start, len(lost), events, hides, at_least=torn))
        inside = end == len(self._text) and not self._whole
        self._saved.bearing = Bearing.ASTRAY if inside else Bearing.UNSURE
        self._at = _skip(_BETWEEN, self._text, end)


def _skip(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


class Scan(NamedTuple):
    """Offset behind the brace that closes an event (None: not found); whether a string is open at the end."""

    end: int | None
    in_string: bool


def scan_event(text: bytes, start: int, stop: int) -> Scan:
    """Look for the brace that closes the one at `start`, before `stop`."""
    depth = 0
    for match in _STRUCTURE.finditer(text, start, stop):
        token = match.group()
        if token == b"{":
            depth += 1
        elif token == b"}":
            depth -= 1
            if depth == 0:
                return Scan(match.end(), False)
        elif token == b'"':
            return Scan(None, True)
    return Scan(None, False)
