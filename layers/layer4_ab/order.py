"""The order of runs: the schedule that cancels a drift, and what of drift and order is left to be seen.

In ABBA each arm is first as often as second, so a steady drift has no part in the mean of an even number of
pairs; blocks are turned to BAAB by a seeded coin, so that a neighbour with a rhythm meets both arms alike.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from layers.evidence.statistics import TAIL

FIRST, SECOND = "a", "b"
BLOCK = (FIRST, SECOND, SECOND, FIRST)
TURNED = (SECOND, FIRST, FIRST, SECOND)
LEAST_A_SIDE = 2
"""Pairs with A first, and with B first, that a spread within each kind needs."""
LEAST_RUNS = 5
"""For a line with an offset an arm: one more than its three parameters leaves one degree of freedom."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A log-ratio with its interval at 95 % and the n behind it."""

    value: float
    low: float
    high: float
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval lies to one side of 0."""
        return self.low > 0 or self.high < 0


def schedule(pairs: int, seed: int) -> tuple[str, ...]:
    """The arms in the order of running; an odd last pair is half a block."""
    coin = random.Random(seed)
    blocks = [coin.choice((BLOCK, TURNED)) for _ in range(math.ceil(pairs / 2))]
    return tuple(arm for block in blocks for arm in block)[: 2 * pairs]


def is_balanced(a_first: Sequence[bool]) -> bool:
    """Whether A was first as often as B, or one more or less where the number is odd."""
    return abs(2 * sum(a_first) - len(a_first)) <= len(a_first) % 2


def order_effect(differences: Sequence[float], a_first: Sequence[bool]) -> Shift | None:
    """How much the second of a pair differs from the first, whichever arm it is; None with too few pairs."""
    one = [d for d, first in zip(differences, a_first, strict=True) if first]
    other = [d for d, first in zip(differences, a_first, strict=True) if not first]
    if min(len(one), len(other)) < LEAST_A_SIDE:
        return None
    freedom = len(differences) - 2
    variance = sum(pvariance(side) * len(side) for side in (one, other)) / freedom
    error = math.sqrt(variance * (1 / len(one) + 1 / len(other))) / 2
    value = (fmean(one) - fmean(other)) / 2
    return _shift(value, error, freedom, len(differences))


def drift(positions: Sequence[float], logs: Sequence[float], is_b: Sequence[bool]) -> Shift | None:
    """How far all runs went together from the first to the last: a line through them, with an offset for B
    (least squares). None with fewer than LEAST_RUNS."""
    import numpy as np

    n = len(positions)
    if n < LEAST_RUNS or len(set(positions)) < 2:
        return None
    at = (np.asarray(positions, np.float64) - min(positions)) / (max(positions) - min(positions))
    design = np.column_stack([np.ones(n), at, np.asarray(is_b, np.float64)])
    solution, _, rank, _ = np.linalg.lstsq(design, np.asarray(logs, np.float64), rcond=None)
    if rank < design.shape[1]:
        return None
    residuals = np.asarray(logs) - design @ solution
    variance = float(residuals @ residuals) / (n - design.shape[1])
    error = math.sqrt(variance * float(np.linalg.inv(design.T @ design)[1, 1]))
    return _shift(float(solution[1]), error, n - design.shape[1], n)


def _shift(value: float, error: float, freedom: int, n: int) -> Shift:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 1 - TAIL)) * error
    return Shift(value, value - half, value + half, n)
