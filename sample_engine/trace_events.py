"""Events of the chrome trace format, as text of one line each. Times go in as whole nanoseconds and come out
as the format's microseconds, exactly.
"""

from __future__ import annotations

import json

Where = tuple[int | str, int | str]
"""A row: process and thread."""

Head = dict[str, str | int]

DEVICE = 0
"""Number of the only device, and the process that its rows belong to."""


def complete(category: str, name: str, where: Where, start_ns: int, end_ns: int, **numbers: int) -> str:
    """Something that lasted."""
    head: Head = {"ph": "X", "cat": category, "name": name}
    args = json.dumps({**numbers, "emulated": 1})
    return _event(head, where, f'"ts": {_us(start_ns)}, "dur": {_us(end_ns - start_ns)}, "args": {args}')


def arrow(phase: str, number: int, where: Where, at_ns: int) -> str:
    """One end ("s" or "f") of an arrow from a call to device work."""
    head: Head = {"ph": phase, "id": number, "cat": "ac2g", "name": "ac2g"}
    if phase == "f":
        head["bp"] = "e"
    return _event(head, where, f'"ts": {_us(at_ns)}')


def instant(name: str, at_ns: int) -> str:
    """A moment of the whole recording."""
    return _event({"ph": "i", "s": "g", "name": name}, ("", ""), f'"ts": {_us(at_ns)}')


def metadata(kind: str, where: Where, key: str, value: str | int) -> str:
    """A name, label or position of a process or thread."""
    return _event({"ph": "M", "name": kind}, where, f'"ts": 0, "args": {json.dumps({key: value})}')


def _event(head: Head, where: Where, rest: str) -> str:
    start = json.dumps({**head, "pid": where[0], "tid": where[1]})
    return f"{start[:-1]}, {rest}}}"


def _us(time_ns: int) -> str:
    return f"{time_ns // 1000}.{time_ns % 1000:03}"
