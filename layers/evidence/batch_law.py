"""Time against batch size: a + b · B^p, and the batch with the highest rate that it predicts. Pure.

a and b are least squares for each p of a grid (never negative: time does not fall below nothing); with three
sizes p is 1. Sizes may be means of many batches; what a batch weighs is how many it stands for. The law says
nothing of what a larger batch does to the wait for its members.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

SIZES_FOR_LINE, SIZES_FOR_POWER = 3, 4
"""Different sizes that a line and a power leave one degree of freedom with."""
POWERS = tuple(round(0.25 + 0.05 * step, 2) for step in range(46))
"""0.25 to 2.5: from nearly free batches to attention over all pairs."""
BEYOND = 2
"""Up to twice the largest batch seen: farther a law is no evidence."""
TIED = 0.01
"""Of the highest rate: the smallest batch within it is the best, since a larger one only waits longer."""


@dataclass(frozen=True, slots=True)
class BatchLaw:
    """a + b · B^p in milliseconds. `best_batch` has the highest B / time of the law up to twice the largest
    batch seen (`largest`)."""

    a_ms: float
    b_ms: float
    p: float
    r2: float
    largest: float
    best_batch: int

    @property
    def beyond_seen(self) -> bool:
        """Whether no batch as large was seen."""
        return self.best_batch > self.largest

    def rate(self, size: float) -> float:
        """Items a millisecond in batches of this size."""
        ms: float = self.a_ms + self.b_ms * size**self.p
        return size / max(ms, sys.float_info.min)


def law_of(batches: Sequence[tuple[float, float]], weights: Sequence[float] = ()) -> BatchLaw | None:
    """The law of (size, ms) of batches; None of too few different sizes (to the nearest whole one), and of
    times that are all the same."""
    sizes = np.array([size for size, _ in batches], np.float64)
    times = np.array([ms for _, ms in batches], np.float64)
    weight = np.array(weights or [1.0] * len(batches), np.float64)
    different = len(np.unique(np.round(sizes)))
    if different < SIZES_FOR_LINE or not np.ptp(times):
        return None
    powers = POWERS if different >= SIZES_FOR_POWER else (1.0,)
    error, p, a, b = min(_at_power(sizes, times, weight, p) for p in powers)
    total = float((weight * (times - np.average(times, weights=weight)) ** 2).sum())
    found = BatchLaw(a, b, p, 1 - error / total, float(sizes.max()), 0)
    reach = range(1, max(1, round(BEYOND * found.largest)) + 1)
    most = max(map(found.rate, reach))
    best = next(size for size in reach if found.rate(size) >= (1 - TIED) * most)
    return BatchLaw(a, b, p, found.r2, found.largest, best)


def _at_power(sizes: Numbers, times: Numbers, weight: Numbers, p: float) -> tuple[float, float, float, float]:
    """(sum of squared errors, p, a, b) of the best a, b >= 0."""
    powered = sizes**p
    middle = float(np.average(powered, weights=weight))
    spread = powered - middle
    b = max(0.0, float((weight * spread * times).sum() / (weight * spread**2).sum()))
    a = float(np.average(times, weights=weight) - b * middle)
    if a < 0:
        a, b = 0.0, float((weight * powered * times).sum() / (weight * powered**2).sum())
    error = float((weight * (times - a - b * powered) ** 2).sum())
    return error, p, a, b
