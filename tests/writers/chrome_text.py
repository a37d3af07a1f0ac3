"""The text of a chrome trace: one list of events, four layouts that real files have.

Times are `Ns` values inside the events. They become decimal microseconds by integer arithmetic and are
spliced into the JSON text as they stand, since a double cannot hold an epoch time to the nanosecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

NS_PER_US = 1_000

Event = Mapping[str, Any]


class Ns(int):
    """A time or duration in nanoseconds, written as microseconds."""


class Raw(str):
    """Text that stands in the place of an event, verbatim."""


class Layout(StrEnum):
    """How the text is laid out; the events are the same in all."""

    NATIVE = "native"
    """Kineto's own: an event over several lines, several keys a line"""
    INDENTED = "indented"
    """one key a line, as newer Kineto and `json.dumps(indent=2)` write it"""
    COMPACT = "compact"
    """one line, `json.dumps` defaults"""
    ARRAY = "array"
    """no top-level object: the bare list of events, one line"""


class TimeFormat(StrEnum):
    """How `ts` is written; `dur` is a number in all of them."""

    DECIMAL = "decimal"
    """123.456"""
    INTEGER = "integer"
    """123, as torch 2.3 and older; a time that is no whole microsecond raises ValueError"""
    STRING = "string"
    """"123.456" in quotes, as Ascend writes it"""


def file_text(
    header: Event, events: Sequence[Event | Raw], footer: Event, layout: Layout, time_format: TimeFormat
) -> str:
    """The whole file: members of `header`, then the events, then `footer` (ARRAY: the events alone)."""
    rendered = [e if isinstance(e, Raw) else event_text(_with_times(e, time_format), layout) for e in events]
    if layout is Layout.ARRAY:
        return "[" + ", ".join(rendered) + "]"
    if layout is Layout.COMPACT:
        array = '"traceEvents": [' + ", ".join(rendered) + "]"
        return "{" + ", ".join([*_members(header), array, *_members(footer)]) + "}"
    array = '"traceEvents": [\n' + _indent(",\n".join(rendered)) + "\n]"
    members = [*_members(header, 2), array, *_members(footer, 2)]
    return "{\n" + _indent(",\n".join(members)) + "\n}\n"


_NUMBER = "\ue000"
"""Marks a string that is to be written as a bare number (a private-use character: no name holds it)."""

_MARKED_NUMBER = re.compile(rf'"{_NUMBER}([-0-9.]+)"')

_NATIVE_LINES = {
    "X": (("ph", "cat", "name", "pid", "tid"), ("ts", "dur"), ("args",)),
    "M": (("name", "ph", "ts", "pid", "tid"), ("args",)),
    "i": (("name", "ph", "s"), ("pid", "tid", "ts")),
    "s": (("ph", "id", "pid", "tid", "ts"), ("cat", "name")),
    "f": (("ph", "id", "pid", "tid", "ts"), ("cat", "name", "bp")),
}
"""Which keys Kineto puts on which line, by phase."""


def _with_times(event: Event, time_format: TimeFormat) -> dict[str, Any]:
    return {key: _time(key, v, time_format) if isinstance(v, Ns) else v for key, v in event.items()}


def _time(key: str, ns: Ns, time_format: TimeFormat) -> str:
    text = _microseconds(ns, whole=time_format is TimeFormat.INTEGER)
    return text if time_format is TimeFormat.STRING and key == "ts" else _NUMBER + text


def _microseconds(ns: int, *, whole: bool) -> str:
    sign, (us, rest) = "-" if ns < 0 else "", divmod(abs(ns), NS_PER_US)
    if not whole:
        return f"{sign}{us}.{rest:03d}"
    if rest:
        raise ValueError(f"{ns} ns is no whole microsecond: integer times cannot hold it")
    return f"{sign}{us}"


def event_text(event: Event, layout: Layout) -> str:
    """One event, as the layout has it."""
    if layout is Layout.NATIVE:
        return _native(event)
    return _dumps(event, 2 if layout is Layout.INDENTED else None)


def _native(event: Event) -> str:
    """One event as Kineto lays it out; one of another shape stays on one line."""
    lines = _NATIVE_LINES.get(event.get("ph", ""), ())
    if set(event) - {key for line in lines for key in line}:
        return _dumps(event)
    parts = [", ".join(_native_member(k, event[k]) for k in line if k in event) for line in lines]
    return "{\n  " + ",\n  ".join(part for part in parts if part) + "\n}"


def _native_member(key: str, value: Any) -> str:
    if key == "args" and value:
        return '"args": {\n    ' + ", ".join(_members(value)) + "\n  }"
    return f"{_dumps(key)}: {_dumps(value)}"


def _indent(text: str) -> str:
    """Two blanks before each line. Names may hold what Python also takes for a line end, JSON does not."""
    return "\n".join("  " + line for line in text.split("\n"))


def _members(top: Event, indentation: int | None = None) -> list[str]:
    return [f"{_dumps(key)}: {_dumps(value, indentation)}" for key, value in top.items()]


def _dumps(value: Any, indentation: int | None = None) -> str:
    return _MARKED_NUMBER.sub(r"\1", json.dumps(value, indent=indentation, ensure_ascii=False))
