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

from parsers.chrome_categories import may_hold_device_work
from parsers.chrome_event import EXACT_EVENTS, NOT_JSON, ExactEvent
from parsers.chrome_layout import BOUNDARY, EVENT_START, SPACE
from parsers.chrome_lenient import repaired_events
from parsers.loss import Loss

EVENT_LIMIT_BYTES = 8 << 20
"""No event is longer: text without an end by then is damage. The longest real one seen is under 1 MB."""
SCANS_PER_BYTE = 4
SHORT_SCAN_BYTES = 1 << 16

LOST = "text that could not be read"
REPAIRED = "events with broken text or fields of a wrong type: repaired"
NO_EVENTS = "elements of the event array that are no events: left out"
SEPARATORS = "commas missing or too many between events: repaired"

_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}]', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_SCALAR = rb'null|true|false|[-+.\deE]+|"(?:[^"\\]++|\\.)*+"|\[\]'
_NO_OBJECT = re.compile(rb"(?:%s)(?=%s[,\]])" % (_SCALAR, SPACE), re.DOTALL)


@dataclass(slots=True)
class Salvage:
    """Events in file order, what was lost, how far the text was used, whether the event array ended there,
    and whether the text ended inside something lost, so that what follows it does not begin with an event.
    """

    events: list[ExactEvent] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    consumed: int = 0
    ended: bool = False
    astray: bool = False


def salvage(text: bytes, offset: int, *, final: bool, whole: bool, astray: bool = False) -> Salvage:
    """Read the text, which starts where an event does (or anywhere, where an earlier text ended `astray`).

    `final`: nothing follows it. `whole`: it ends between two events, as far as one can see. Otherwise an
    event that may go on in the next text is left unconsumed.
    """
    return _Reader(text, offset, final, whole).read(astray)


class _Reader:
    def __init__(self, text: bytes, offset: int, final: bool, whole: bool) -> None:
        self._text, self._offset, self._final, self._whole = text, offset, final, whole
        cuts = [(match.start() + 1, match.end()) for match in BOUNDARY.finditer(text)]
        self._ends, self._starts = [end for end, _ in cuts], [start for _, start in cuts]
        self._group = 1
        self._scan_budget_bytes = SCANS_PER_BYTE * len(text)
        self._at = 0
        self._saved = Salvage()

    def read(self, astray: bool) -> Salvage:
        if astray:
            self._lose(0, self._starts[0] if self._starts else len(self._text), 0)
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
            self._saved.ended = True
            return False
        if first != ord("{"):
            return self._take_junk()
        return self._take_group() or self._take_event()

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
        start, text = self._at, self._text
        end = self._own_end()
        if end is None and not self._final and len(text) - start < EVENT_LIMIT_BYTES:
            return False
        if end is not None and not (self._final or self._whole) and not text[end:].lstrip():
            return False
        if end is not None and self._accept(start, end):
            self._at = end
            self._cross()
            return True
        return self._repair(start, end) or self._give_up(start, end)

    def _repair(self, start: int, end: int | None) -> bool:
        cut = bisect_right(self._ends, start)
        stops = set(self._ends[cut : cut + 1]) | ({end} if end is not None else set()) or {len(self._text)}
        for stop in sorted(stops):
            if events := repaired_events(self._text[start:stop]):
                self._saved.events += [event for event, _ in events]
                self._note(REPAIRED, start, hides=any(in_doubt for _, in_doubt in events))
                self._at = stop
                self._cross()
                return True
        return False

    def _give_up(self, start: int, end: int | None) -> bool:
        """Lose the text up to the next event."""
        cut = bisect_right(self._starts, start)
        if cut < len(self._starts):
            self._lose(start, self._starts[cut], 1)
        else:
            self._lose(start, end if end is not None else len(self._text), 1)
        return True

    def _take_junk(self) -> bool:
        """Something between events that is none."""
        start, text = self._at, self._text
        if match := _NO_OBJECT.match(text, start):
            self._note(NO_EVENTS, start, match.end() - start)
            self._at = match.end()
            self._cross()
            return True
        event = EVENT_START.search(text, start)
        if event is None and not self._final and len(text) - start < EVENT_LIMIT_BYTES:
            return False
        bracket = text.find(b"]", start) if self._final else -1
        self._lose(start, event.start() if event else bracket if bracket >= 0 else len(text), 1)
        return True

    def _own_end(self) -> int | None:
        """`balanced_end` within the budget, so that a file of nothing but damage is not scanned over and
        over.
        """
        limit = EVENT_LIMIT_BYTES if self._scan_budget_bytes > 0 else SHORT_SCAN_BYTES
        end = balanced_end(self._text, self._at, limit)
        stop = end if end is not None else min(self._at + limit, len(self._text))
        self._scan_budget_bytes -= stop - self._at
        return end

    def _accept(self, start: int, end: int) -> bool:
        try:
            self._saved.events += EXACT_EVENTS.decode(b"[" + self._text[start:end] + b"]")
        except NOT_JSON:
            return False
        return True

    def _cross(self, expected_commas: int = 1) -> None:
        """Go on to what stands behind an event, past its comma."""
        start, self._at = self._at, _skip(_BETWEEN, self._text, self._at)
        last = self._text[self._at : self._at + 1] in (b"", b"]")
        if self._text.count(b",", start, self._at) != (0 if last else expected_commas):
            self._note(SEPARATORS, start)

    def _note(self, what: str, at: int, lost_bytes: int = 0, hides: bool = False) -> None:
        self._saved.losses.append(Loss(what, self._offset + at, lost_bytes, 0, hides))

    def _lose(self, start: int, end: int, events: int) -> None:
        lost = self._text[start:end]
        hides = may_hold_device_work(lost)
        self._saved.losses.append(Loss(LOST, self._offset + start, len(lost), events, hides))
        self._saved.astray = end == len(self._text) and not self._whole
        self._at = _skip(_BETWEEN, self._text, end)


def _skip(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def balanced_end(text: bytes, start: int, limit: int = EVENT_LIMIT_BYTES) -> int | None:
    """Offset after the brace that closes the one at `start`, None where there is none within `limit`
    bytes.
    """
    depth = 0
    for match in _STRUCTURE.finditer(text, start, start + limit):
        token = match.group()
        if token == b"{":
            depth += 1
        elif token == b"}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None
