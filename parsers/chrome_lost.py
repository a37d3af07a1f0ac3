"""What a text that could not be read may have been, told by what is left of it.

A careless writer fails to escape a name, and the rest of its event stands there: such a text says what it
was, and is all that is lost. Disks and copies take no notice of events. They overwrite a stretch of the file
or leave it out, and then the head of one event stands before the tail of another, with nothing to say how
much lay between them. So a text speaks for itself where it is, its name apart, one sound event with all that
its phase has. Of any other, more may be gone than stands there, and device work with it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable

from parsers.chrome_categories import DEVICE_LITERAL, HOST_LITERAL
from parsers.chrome_layout import SPACE

LONGEST_CLEARED_BYTES = 2048
"""A lost text that is longer is more than the host event that it says it is; those have 150 to 900 bytes."""
_OVERWRITTEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]{2}|(.)\1{63}", re.DOTALL)
"""What no profiler writes: control characters beside each other, or 64 times the same byte."""
_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")
_AFTER = rb'"%s(?:,%s"(?:%s)"%s:|\})' % (SPACE, SPACE, "|".join(_KEYS).encode(), SPACE)
_NAME = re.compile(rb'("name"%s:%s").*?(%s)' % (SPACE, SPACE, _AFTER), re.DOTALL)
"""A name up to where the next key, or the end of its object, shows that it is over."""
_PHASE = re.compile(rb'"ph"%s:%s"(.)"' % (SPACE, SPACE))
_OF_COMPLETE, _OF_OTHERS = {"ph", "name", "pid", "tid", "ts", "dur"}, {"ph", "pid"}
COMPLETE, METADATA = "X", "M"


def is_overwritten(text: bytes) -> bool:
    """Whether something that no profiler writes stands in the place of a part of it."""
    return _OVERWRITTEN.search(text) is not None


def has_all(phase: str, keys: Iterable[str]) -> bool:
    """Whether an event of this phase has what others have, nothing twice, and a duration only where it is
    complete: two pieces of different events do not."""
    found = Counter(keys)
    wanted = _OF_COMPLETE if phase == COMPLETE else _OF_OTHERS
    once = all(found[key] <= 1 for key in _KEYS)
    return once and wanted <= found.keys() and (phase == COMPLETE or not found["dur"])


def speaks_for_itself(lost: bytes) -> bool:
    """Whether a lost text is one event, and all that was lost. Of those that hold free text, which a writer
    may fail to escape: complete events and metadata.
    """
    if not lost.startswith(b"{") or is_overwritten(lost):
        return False
    nameless = _NAME.sub(rb"\1\2", lost).decode("utf-8", "replace")
    try:
        members: list[tuple[str, object]] = json.loads(nameless, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return False
    phase = dict(members).get("ph")
    return phase in (COMPLETE, METADATA) and has_all(str(phase), [key for key, _ in members])


def may_hold_device_work(lost: bytes) -> bool:
    """Whether a lost text may have been a device operation, or stand where one was: it says so, or does not
    speak for itself, or does not say that it was something else.
    """
    if DEVICE_LITERAL.search(lost) is not None or len(lost) > LONGEST_CLEARED_BYTES:
        return True
    return not speaks_for_itself(lost) or HOST_LITERAL.search(lost) is None


def events_in(lost: bytes) -> int:
    """How many events a lost text shows the beginnings or phases of; one at least."""
    return max(1, len(_PHASE.findall(lost)))
