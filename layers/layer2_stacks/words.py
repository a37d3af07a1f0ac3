"""The words of Layer 2's verdict and the thresholds that they are called by.

    blocked              at half of the looks or more it waits, or is on no CPU
    burning-cpu          it is on a CPU at half of the looks or more, and one line or function stands out
    nothing-stands-out   no line or function can hold a tenth
    undecided            an interval reaches over a threshold, or the captures cannot tell

A share counts by its interval, never by its value alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.model import Row, Share
from layers.layer2_stacks.reading import Reading

BLOCKED_LIMIT = 0.50
"""Of a thread's time: with more than half of it in waits, no line of its own code can be the larger part."""
BUSY_LIMIT = 0.50
"""The same from the other side: on a CPU and in no wait."""
STANDS_OUT = 0.10
"""perfkit's choice, of a thread's time: without it the thread gets 11 % faster (Amdahl). A reset of rows that
a fix of SGLang-Omni removed held 18 to 21 % of its scheduler (sgl-project/sglang-omni#1798)."""


class Word(StrEnum):
    """The verdict."""

    BLOCKED = "blocked"
    BURNING = "burning-cpu"
    NOTHING = "nothing-stands-out"
    UNDECIDED = "undecided"
    VOID = "void"


def word_of(reading: Reading) -> Word:
    """The thread in one word. A spin is a wait: it burns a CPU and does nothing."""
    idle, on_cpu = reading.idle, reading.on_cpu
    if mostly_waits(reading):
        return Word.BLOCKED
    if on_cpu is not None:
        if on_cpu.high <= BUSY_LIMIT:
            return Word.BLOCKED
        return _running(reading) if on_cpu.low >= BUSY_LIMIT else Word.UNDECIDED
    if _keeps_the_lock(reading):
        return _running(reading)
    spread = idle is not None and not stands_out(map(_share, (*idle.lines, *idle.functions)))
    return (
        Word.NOTHING if spread and idle is not None and idle.waiting.high < BLOCKED_LIMIT else Word.UNDECIDED
    )


def _keeps_the_lock(reading: Reading) -> bool:
    """Whether it holds the interpreter's lock for half of its time: then it runs, where no capture without
    --idle says so (of another PID namespace there is none)."""
    held = reading.holds_lock
    told = reading.on_cpu is None and reading.mode in (Mode.IDLE, Mode.GIL)
    return told and held is not None and held.low >= BUSY_LIMIT


def mostly_waits(reading: Reading) -> bool:
    """Whether half of all looks or more are in a known wait."""
    return reading.idle is not None and reading.idle.waiting.low >= BLOCKED_LIMIT


def _running(reading: Reading) -> Word:
    rows = [*reading.lines.values(), *reading.functions.values()]
    if any(share.low >= STANDS_OUT for share in rows):
        return Word.BURNING
    return Word.UNDECIDED if stands_out(rows) else Word.NOTHING


def _share(row: Row) -> Share:
    return row.share


def stands_out(shares: Iterable[Share]) -> bool:
    """Whether one of them may hold STANDS_OUT or more."""
    return any(share.high >= STANDS_OUT for share in shares)


def deciding(reading: Reading) -> tuple[Share, float]:
    """The share that the word hangs on, and the threshold that it is held against."""
    idle = reading.idle
    untimed = reading.on_cpu is None and not _keeps_the_lock(reading)
    if idle is not None and (mostly_waits(reading) or untimed):
        return idle.waiting, BLOCKED_LIMIT
    return reading.on_cpu or reading.holds_lock or reading.main.waiting, BUSY_LIMIT


def poorest(reading: Reading) -> tuple[int, int]:
    """Ticks and captures behind the word: of the verdict's mode, or of what decides where that has fewer."""
    decides, _ = deciding(reading)
    seen = [n for n in reading.main.ticks if n]
    return min(sum(seen), decides.ticks), min(len(seen), len(decides.per_capture))
