"""The keys that stand around the event array of a chrome trace, and whether the text ends as it should.

Metadata holds log lines and hand-made text more often than events do; it must never cost the events. What
is no valid JSON is repaired, else its plain pairs are picked out, and either is said.
"""

from __future__ import annotations

import json
import re
from typing import Any

from parsers.chrome_categories import DEVICE_LITERAL
from parsers.json_repair import repair_json
from parsers.loss import Loss

AROUND_LIMIT_BYTES = 16 << 20
"""Of text before and behind the array; real files have under 1 MB."""
JSON_SPACE = b" \t\r\n"
EVENTS_KEY = "traceEvents"
_PAIR = re.compile(rb'"([A-Za-z_]+)"\s*:\s*(-?\d{1,30}(?![\d.eE])|"[^"\\\n]*")')
_PLACE = b'"":0'
"""Stands for the event array where the text on one side of it is parsed."""
_REPAIRED = "keys beside the events are no valid JSON: repaired, or read in part"


def parse_around(
    before: bytes, after: bytes | None, offset: int, text_bytes: int
) -> tuple[dict[str, Any], list[Loss]]:
    """The keys beside the array, and what of that text was lost.

    `before` is `{ ... ,` (empty: the file is the bare array), `after` everything behind the closing bracket,
    cut at AROUND_LIMIT_BYTES (None: the array was never closed); `offset` is where that begins, and
    `text_bytes` where the text ends.
    """
    uncut_bytes = text_bytes - offset
    if not before:
        return {}, _tail_losses(after or b"", 0, offset, uncut_bytes)
    head, head_losses = _parse(before + _PLACE + b"}", 0)
    if after is None:
        return head, head_losses
    end = _object_end(after)
    members = after[:end]
    tail, tail_losses = _parse(b"{" + _PLACE + members, offset)
    if not members.strip(JSON_SPACE):
        tail_losses = [Loss("the closing brace is missing: the file may be cut", offset, 0, 0, False)]
    if EVENTS_KEY in tail:
        what = "a second event array in the same file: not read"
        tail_losses.append(Loss(what, offset, len(members), 0, _holds_device_work(members)))
    around = {**head, **tail}
    around.pop("", None)
    return around, head_losses + tail_losses + _tail_losses(after, end, offset, uncut_bytes)


def _tail_losses(after: bytes, end: int, offset: int, uncut_bytes: int) -> list[Loss]:
    """What stands behind the end of the document, if anything does."""
    extra = after[end:].strip(JSON_SPACE)
    if not extra:
        return []
    lost_bytes = len(extra) + uncut_bytes - len(after)
    if not extra.strip(b"\x00"):
        return [Loss("zero bytes after the end: ignored", offset + end, lost_bytes, 0, False)]
    what = "text after the end of the trace (a second document?): not read"
    return [Loss(what, offset + end, lost_bytes, 0, _holds_device_work(extra))]


def _holds_device_work(text: bytes) -> bool:
    return DEVICE_LITERAL.search(text) is not None or len(text) >= AROUND_LIMIT_BYTES


_BRACES = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}]', re.DOTALL)


def _object_end(after: bytes) -> int:
    """Where the object that the array is part of ends: behind the brace that closes it."""
    depth = 0
    for match in _BRACES.finditer(after):
        depth += {b"{": 1, b"}": -1}.get(match.group(), 0)
        if depth < 0:
            return match.end()
    return len(after)


def _parse(text: bytes, offset: int) -> tuple[dict[str, Any], list[Loss]]:
    try:
        return _loads(text), []
    except (ValueError, RecursionError):
        repair = repair_json(text)
    hides = _holds_device_work(text)
    try:
        return _loads(repair.text), [Loss(_REPAIRED, offset, repair.lost_bytes, 0, hides)]
    except (ValueError, RecursionError):
        pairs = list(_PAIR.finditer(text))
        unread = len(text) - sum(len(pair.group()) for pair in pairs)
        around = {pair[1].decode(): _plain(pair[2]) for pair in pairs}
        return around, [Loss(_REPAIRED, offset, unread, 0, hides, at_least=True)]


def _loads(text: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text.decode())
    return value


def _plain(value: bytes) -> int | str:
    return value.strip(b'"').decode("utf-8", "replace") if value.startswith(b'"') else int(value)
