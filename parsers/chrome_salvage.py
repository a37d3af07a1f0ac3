"""Read damaged trace text event by event, and say what was lost.

For each place where an event begins, in order of trust: the text up to where the next one seems to begin,
strictly; the text up to its own closing brace, strictly (its arguments may hold things that look like
events); the first again after repair. What is left is lost, with its offset and size, and reading goes on
at the next beginning.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from parsers.chrome_categories import DEVICE_LITERAL
from parsers.chrome_event import EXACT_EVENTS, ExactEvent
from parsers.chrome_layout import BOUNDARY
from parsers.json_repair import repair_json
from parsers.loss import Loss

EVENT_LIMIT_BYTES = 8 << 20
"""No event is longer: text without an end by then is damage. The longest real one seen is under 1 MB."""
SCANS_PER_BYTE = 4
SHORT_SCAN_BYTES = 1 << 16
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_SPACE = re.compile(rb"[\s,]*")


@dataclass(slots=True)
class Salvage:
    """Events in file order, what was lost, how far the text was used, and whether the event array ended
    there.
    """

    events: list[ExactEvent] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    consumed: int = 0
    ended: bool = False
    scan_budget_bytes: int = 0


def salvage(text: bytes, offset: int, final: bool) -> Salvage:
    """Read the text, which starts between two events. Unless it is the `final` piece, an event that may go
    on in the next piece is left unconsumed."""
    saved = Salvage(scan_budget_bytes=SCANS_PER_BYTE * len(text))
    while not saved.ended:
        saved.consumed = _skip(_SPACE, text, saved.consumed)
        if saved.consumed >= len(text):
            break
        if text[saved.consumed] == ord("]"):
            saved.ended = True
        elif not _take_event(text, offset, final, saved):
            break
    return saved


def _take_event(text: bytes, offset: int, final: bool, saved: Salvage) -> bool:
    """Consume one event, or lose it. False where it may continue beyond this piece."""
    start = saved.consumed
    boundary = BOUNDARY.search(text, start)
    next_event = boundary.end() if boundary else len(text)
    candidate = text[start : boundary.start() + 1] if boundary else text[start:]
    if boundary and _accept(candidate, saved):
        saved.consumed = next_event
        return True
    end = _own_end(text, start, saved)
    if end is None and not final and len(text) - start < EVENT_LIMIT_BYTES:
        return False
    if end is not None and _accept(text[start:end], saved):
        saved.consumed = end
        return True
    repaired = _repair(candidate if boundary or end is None else text[start:end])
    if repaired:
        saved.events += repaired
        saved.losses.append(Loss("events that are no valid JSON: repaired", offset + start, 0, 0, False))
    else:
        hides = DEVICE_LITERAL.search(candidate) is not None
        saved.losses.append(Loss("text that could not be read", offset + start, len(candidate), 1, hides))
    saved.consumed = next_event if boundary or end is None else end
    return True


def _own_end(text: bytes, start: int, saved: Salvage) -> int | None:
    """`balanced_end` within the budget, so that a file of nothing but damage is not scanned over and over."""
    limit = EVENT_LIMIT_BYTES if saved.scan_budget_bytes > 0 else SHORT_SCAN_BYTES
    end = balanced_end(text, start, limit)
    saved.scan_budget_bytes -= end - start if end is not None else min(limit, len(text) - start)
    return end


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
        if depth == 0:
            return None
    return None


def _accept(candidate: bytes, saved: Salvage) -> bool:
    try:
        saved.events += EXACT_EVENTS.decode(b"[" + candidate + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _repair(candidate: bytes) -> list[ExactEvent]:
    """The events of a candidate after repair; fields of an impossible type are left out. Empty: beyond
    repair.
    """
    end = candidate.rfind(b"}") + 1
    try:
        values = json.loads(b"[" + repair_json(candidate[:end]) + b"]", parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return []
    if not all(isinstance(value, dict) for value in values):
        return []
    return [_lenient(value) for value in values]


def _lenient(value: dict[str, Any]) -> ExactEvent:
    """An event from a dictionary of anything: fields that do not fit their type are dropped."""
    plain = {key: value[key] for key in ExactEvent.__struct_fields__ if _fits(key, value.get(key))}
    if isinstance(value.get("args"), dict):
        plain["args"] = {k: v for k, v in value["args"].items() if isinstance(v, int | float | str)}
    return msgspec.json.decode(json.dumps(plain), type=ExactEvent)


def _fits(key: str, value: Any) -> bool:
    if key == "args" or value is None:
        return False
    if key in ("ph", "cat"):
        return isinstance(value, str)
    if key in ("ts", "dur"):
        return _is_number(value)
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return abs(float(value)) < float("inf")
    except (TypeError, ValueError, OverflowError):
        return False


def _skip(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
