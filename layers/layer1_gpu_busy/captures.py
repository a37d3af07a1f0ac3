"""Which recordings repeat each other: how many independent captures say the same of one device.

Three captures that agree make a finding strong, so what looks like a repeat must be one. Recordings of one
time are none: a file given twice, and ranks whose files do not name them. Nor is another workload, however
close its ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.layer1_gpu_busy.thresholds import Word

AGREE_WITHIN = 0.05
"""Captures whose ratios lie this close repeat each other. perfkit's choice: a sixth of the undecided
range."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One device of one recording, when it was recorded (absolute where the file tells), and what it says.

    `work` numbers the workload of the file, as `runs.py` tells them apart."""

    rank: int
    device: int
    start_ns: int
    end_ns: int
    word: Word
    ratio: float
    work: int | None = None


def count_captures(of: Capture, captures: Sequence[Capture]) -> int:
    """The captures that repeat this one, itself included: of its workload, rank and device, at different
    times.

    One that disagrees, in its word or by more than AGREE_WITHIN, leaves each for itself.
    """
    comparable = [c for c in captures if (c.work, c.rank, c.device) == (of.work, of.rank, of.device)]
    ratios = [c.ratio for c in comparable]
    if len({c.word for c in comparable}) > 1 or max(ratios) - min(ratios) > AGREE_WITHIN:
        return 1
    return _one_after_another(comparable)


def _one_after_another(captures: Sequence[Capture]) -> int:
    """The most captures no two of which overlap in time (greedy by end, which is optimal)."""
    count, free_from_ns = 0, None
    for capture in sorted(captures, key=lambda c: c.end_ns):
        if free_from_ns is None or capture.start_ns >= free_from_ns:
            count, free_from_ns = count + 1, capture.end_ns
    return count
