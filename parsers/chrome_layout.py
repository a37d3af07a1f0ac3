"""Where the events of a chrome trace lie in its text, without decoding it.

A trace is an object with a `traceEvents` array, or that array alone. This file finds where the array
begins, where the text may be cut between two events, and what the keys around the array say. It assumes no
layout: a cut is the text `}`, a comma, `{` and a quoted key of an event, in any spacing. Such a cut may in
odd files lie inside the arguments of an event; whoever decodes the pieces notices, because a piece is then
no valid JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

from parsers.errors import UnreadableInput
from parsers.json_repair import repair_json

BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid|tid|args|dur|bp|id|tts|s)"\s*:)')
"""The end of one event where the next begins; the match ends right before that one's brace."""

NESTED_LIST = re.compile(rb"\[\s*\{")
"""An array of objects: inside the events it can only be an argument, and may look like events of its own."""

_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NO_ARRAY = re.compile(rb'"traceEvents"\s*:\s*null')
_BOM = b"\xef\xbb\xbf"
PREAMBLE_LIMIT_BYTES = 64 << 20


def find_events(head: bytes) -> tuple[int, bytes] | None:
    """(offset of the first byte after the array's bracket, the text of the object before it), or None: not
    yet seen.

    For a bare array the text before is empty.
    """
    start = len(_BOM) if head.startswith(_BOM) else 0
    body = head[start:].lstrip()
    if body.startswith(b"["):
        return len(head) - len(body) + 1, b""
    match = _ARRAY.search(head, start)
    return (match.end(), head[start : match.start()]) if match else None


def explain_no_events(path: str, head: bytes) -> UnreadableInput:
    """Why a file without an event array is not a trace, in one line."""
    if _NO_ARRAY.search(head):
        return UnreadableInput(f"{path}: traceEvents is null: the profiler wrote no events")
    start = head[:60].decode("utf-8", "replace")
    if head[:1].isspace() or head[:1] in (b"{", b"\xef"):
        return UnreadableInput(f"{path}: JSON without a traceEvents array: not a chrome trace")
    return UnreadableInput(f"{path}: not a chrome trace: it starts with {start!r}")


def last_boundary(text: bytes) -> tuple[int, int] | None:
    """The last cut of a text: (end of the event before it, beginning of the event after it), None without
    one.
    """
    window = 1 << 14
    while True:
        low = max(0, len(text) - window)
        found = None
        for match in BOUNDARY.finditer(text, low):
            found = match.start() + 1, match.end()
        if found or low == 0:
            return found
        window *= 8


def event_separator(text: bytes) -> bytes | None:
    """The exact bytes that stand between two events of a regularly laid out text, None where it is not
    regular.

    They run from a closing brace to the next opening one and hold a line break, so that no string can hold
    them.
    """
    seen = {match.group() + b"{" for match in BOUNDARY.finditer(text)}
    separator = seen.pop() if len(seen) == 1 else None
    return separator if separator and b"\n" in separator else None


def parse_around(before: bytes, after: bytes) -> dict[str, Any]:
    """The keys beside the event array: `before` is `{ ... ,` and `after` is `, ... }`; what cannot be read
    is left out.
    """
    around = _parse_object(before.strip().rstrip(b",") + b"}") if before.strip() else {}
    tail = after.strip().lstrip(b",")
    return {**around, **(_parse_object(b"{" + tail) if tail else {})}


def _parse_object(text: bytes) -> dict[str, Any]:
    for attempt in (text, repair_json(text)):
        try:
            value = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return _parse_pairs(text)


_PAIR = re.compile(rb'"([A-Za-z_]+)"\s*:\s*(-?\d+|"[^"\\\n]*")')


def _parse_pairs(text: bytes) -> dict[str, Any]:
    """Plain `"key": number or string` pairs of an object that is beyond repair (log lines in the
    metadata).
    """
    return {key.decode(): json.loads(value) for key, value in _PAIR.findall(text)}
