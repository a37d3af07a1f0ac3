"""Which ticks a capture kept, and who says so. Never guessed: a mode that nobody tells stays unknown.

One thing the file itself can show: where no thread lacks a tick, none was left out as idle. Then its shares
are of all time, whatever the command was. That ticks are missing does not say which filter took them.
"""

from __future__ import annotations

from collections import Counter

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.flags import mode_of_command
from layers.layer2_stacks.model import ModeFrom
from parsers.pyspy_log import PySpyLog
from parsers.stack_model import RecordedStacks, ThreadName

MIN_THREADS = 2
"""Where no number of ticks is to be expected: equal counts of several threads are no accident."""


def mode_of(recorded: RecordedStacks, log: PySpyLog | None, told: Mode | None) -> tuple[Mode, ModeFrom]:
    """The mode of a file that was found."""
    if told is not None:
        return told, ModeFrom.TOLD
    if log is not None and log.command is not None:
        return mode_of_command(log.command), ModeFrom.COMMAND
    if _kept_all(ticks_by_thread(recorded), log.expected_ticks if log else None):
        return Mode.IDLE, ModeFrom.TICKS
    return Mode.UNKNOWN, ModeFrom.NOBODY


def ticks_by_thread(recorded: RecordedStacks) -> dict[tuple[int, ThreadName], int]:
    """Of every thread that the file names, by its innermost process."""
    ticks: Counter[tuple[int, ThreadName]] = Counter()
    for stack in recorded.stacks:
        if stack.thread is not None:
            pid = stack.processes[-1].pid if stack.processes else 0
            ticks[pid, stack.thread] += stack.count
    return ticks


def _kept_all(ticks: dict[tuple[int, ThreadName], int], expected: int | None) -> bool:
    counts = set(ticks.values())
    if expected is not None:
        return counts == {expected}
    return len(counts) == 1 and len(ticks) >= MIN_THREADS
