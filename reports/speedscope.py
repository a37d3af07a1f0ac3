"""Captures as one file for speedscope.app: a profile a thread, a sample a tick, each of the same weight.

Names are as the profiler wrote them, so that perfkit reads the file back to the same counts; of a process its
number is kept, its command line is not. Several captures follow each other in a profile. The order of ticks
is that of the file where that keeps one; where it does not, the document's name says so, and only the views
that sort by weight mean something. Threads are not aligned in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from layers.evidence.wording import counted
from parsers.errors import UsageError
from parsers.stack_model import Frame, RecordedStacks, Stack

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
"""Names the format; nobody fetches it. Fields as speedscope 1.25 reads them (its file-format-spec.ts)."""
MAX_SAMPLES = 5_000_000
"""A file of about 1 GB, at which viewers end (speedscope #340)."""
UNORDERED = "order of samples not recorded: use Left Heavy"


def speedscope_document(
    captures: Sequence[RecordedStacks], name: str, exporter: str = "perfkit"
) -> dict[str, Any]:
    """The document, ready for JSON. UsageError where the captures hold no sample, or too many of them."""
    samples = sum(capture.samples for capture in captures)
    if not 0 < samples <= MAX_SAMPLES:
        allowed = f"a speedscope file takes 1 to {MAX_SAMPLES:,}"
        raise UsageError(f"{counted(samples, 'sample')}: {allowed}; export fewer captures, or --folded")
    frames: dict[Frame, int] = {}
    threads: dict[str, list[list[int]]] = defaultdict(list)
    for stack in _in_order(captures):
        threads[_thread(stack)].append([frames.setdefault(f, len(frames)) for f in stack.frames])
    unit, weight = _weight(captures)
    ordered = sorted(threads.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "$schema": SCHEMA,
        "name": name if all(capture.series for capture in captures) else f"{name} ({UNORDERED})",
        "exporter": exporter,
        "activeProfileIndex": 0,
        "shared": {"frames": list(map(_frame, frames))},
        "profiles": [_profile(thread, stacks, unit, weight) for thread, stacks in ordered],
    }


def _in_order(captures: Iterable[RecordedStacks]) -> Iterator[Stack]:
    """One stack a tick."""
    for capture in captures:
        for series in capture.series:
            yield from (capture.stacks[at] for at in series)
        if not capture.series:
            for stack in capture.stacks:
                yield from repeat(stack, stack.count)


def _thread(stack: Stack) -> str:
    """A profile's name as py-spy writes it; empty where neither process nor thread is known."""
    process = f"Process {stack.processes[-1].pid}" if stack.processes else ""
    if stack.thread is None:
        return process
    if not stack.thread.identity:
        return stack.thread.name
    named = f' "{stack.thread.name}"' if stack.thread.name else ""
    return f"{process} Thread {stack.thread.identity}{named}".strip()


def _weight(captures: Iterable[RecordedStacks]) -> tuple[str, float]:
    """The unit and weight of a tick: seconds where every file tells the same time between two ticks."""
    intervals = {capture.interval_s for capture in captures}
    seconds = intervals.pop() if len(intervals) == 1 else None
    return ("none", 1) if seconds is None else ("seconds", seconds)


def _frame(frame: Frame) -> dict[str, str | int]:
    found: dict[str, str | int] = {"name": frame.function}
    if frame.file:
        found["file"] = frame.file
    if frame.line is not None:
        found["line"] = frame.line
    return found


def _profile(name: str, stacks: list[list[int]], unit: str, weight: float) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": len(stacks) * weight,
        "samples": stacks,
        "weights": [weight] * len(stacks),
    }
