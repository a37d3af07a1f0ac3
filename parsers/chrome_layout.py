"""Where the events of a chrome trace lie in its text, without decoding it.

A trace is an object with a `traceEvents` array, or that array alone. This file finds where the array
begins and where the text may be cut between two events. It assumes no layout: a cut is the text `}`, a
comma, `{` and a quoted key of an event, in any spacing. Such a cut may in odd files lie inside the
arguments of an event; whoever decodes the pieces notices, because a piece is then no valid JSON.
"""

from __future__ import annotations

import re

from parsers.errors import UnreadableInput
from parsers.text_stream import GZIP_MAGIC, refuse_foreign

SPACE = rb"[ \t\r\n]*"
"""White space as JSON has it, which is less than what regular expressions call so."""

_KEY = rb'"(?:ph|name|cat|ts|pid|tid|args|dur|bp|id|tts|s)"%s:' % SPACE
_BEGINNING = rb"\{%s%s" % (SPACE, _KEY)
BOUNDARY = re.compile(rb"\}%s,%s(?=%s)" % (SPACE, SPACE, _BEGINNING))
"""The end of one event where the next begins; the match ends right before that one's brace."""

EVENT_START = re.compile(_BEGINNING)
"""Text that looks like the beginning of an event."""

STRAY_BRACKET = re.compile(rb"\]%s(?:(?:,%s)?%s|%s)" % (SPACE, SPACE, _BEGINNING, _KEY))
"""A closing bracket with an event behind it: it does not end the event array."""

NESTED_LIST = re.compile(rb"\[%s\{" % SPACE)
"""An array of objects: inside the events it can only be an argument, and may look like events of its own."""

_BARE_ARRAY = re.compile(rb"%s(?P<bracket>\[)%s(?P<sure>\]|(?=%s))?" % (SPACE, SPACE, _BEGINNING))
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NO_ARRAY = re.compile(rb'"traceEvents"\s*:\s*null')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BOM = b"\xef\xbb\xbf"
SHOWN_BYTES = 60


def find_events(head: bytes) -> tuple[int, bytes] | None:
    """(offset of the first byte after the array's bracket, the text of the object before it), or None: not
    yet seen.

    For a bare array the text before is empty.
    """
    start = len(_BOM) if head.startswith(_BOM) else 0
    bare = _BARE_ARRAY.match(head, start)
    if bare and bare["sure"] is not None:
        return bare.end("bracket"), b""
    arrays = list(_ARRAY.finditer(head, start))
    if arrays:
        of_the_trace = (match for match in arrays if _depth(head[start : match.start()]) == 1)
        match = next(of_the_trace, arrays[0])  # of broken metadata no depth can be told
        return match.end(), head[start : match.start()]
    return (bare.end("bracket"), b"") if bare else None


def _depth(before: bytes) -> int:
    """How many brackets are open at the end of a text: more than one where a key of the same name stands
    inside the metadata of the trace.
    """
    plain = _STRING.sub(b"", before)
    return sum(plain.count(opening) for opening in b"{[") - sum(plain.count(closing) for closing in b"}]")


def explain_no_events(path: str, head: bytes, whole: bool) -> UnreadableInput:
    """Why a file without an event array is not a trace, in one line; `whole`: `head` is all of it."""
    if not head:
        return UnreadableInput(f"{path}: gzip data of nothing: nothing was recorded, or the copy failed")
    if head.startswith(GZIP_MAGIC):
        return UnreadableInput(f"{path}: gzip inside gzip: unpack it once (gunzip)")
    try:
        refuse_foreign(path, head)
    except UnreadableInput as error:
        return error
    if _NO_ARRAY.search(head):
        return UnreadableInput(f"{path}: traceEvents is null: the profiler wrote no events")
    if head.removeprefix(_BOM).lstrip().startswith(b"{"):
        if not whole:
            return UnreadableInput(f"{path}: no traceEvents array in its first {len(head) >> 20} MiB of JSON")
        return UnreadableInput(f"{path}: JSON without a traceEvents array: not a chrome trace")
    start = head[:SHOWN_BYTES].decode("utf-8", "replace")
    return UnreadableInput(f"{path}: not a chrome trace: it starts with {start!r}")


def last_boundary(text: bytes | memoryview) -> tuple[int, int] | None:
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
