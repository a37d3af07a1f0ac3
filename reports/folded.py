"""Captures as collapsed stacks, a line each with its count, for flamegraph.pl, inferno and their like.

py-spy escapes nothing, so a `;` or a line end in a name tears its stack apart. Here such characters are
written as escapes of Python's, `;` as `\\x3b`, a backslash as two, so that different names stay different. A
last word of digits has its blank escaped, or it would be taken for a second column of counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from layers.evidence.wording import visible
from layers.layer2_stacks.tree_growth import FRAMELESS
from parsers.stack_model import RecordedStacks, Stack

LAST_NUMBER = re.compile(r" (?=[\d.]+\Z)")


def folded(captures: Iterable[RecordedStacks]) -> str:
    """All captures added up, in the order of the text; empty where there is no sample."""
    counts: Counter[str] = Counter()
    for capture in captures:
        for stack in capture.stacks:
            counts[LAST_NUMBER.sub(r"\\x20", ";".join(_parts(stack)))] += stack.count
    return "".join(f"{text} {count}\n" for text, count in sorted(counts.items()))


def _parts(stack: Stack) -> Iterator[str]:
    """Process, thread and frames, as py-spy's raw format has them."""
    for process in stack.processes:
        yield f'process {process.pid}:"{_escaped(process.command)}"'
    if stack.thread is not None:
        named = f": {_escaped(stack.thread.name)}" if stack.thread.name else ""
        yield f"thread ({_escaped(stack.thread.identity)}){named}"
    yield from (_escaped(str(frame)) for frame in stack.frames)
    if not (stack.processes or stack.thread or stack.frames):
        yield FRAMELESS


def _escaped(text: str) -> str:
    return visible(text.replace("\\", "\\\\")).replace(";", "\\x3b")
