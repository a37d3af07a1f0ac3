"""A percentile with its interval, where there are enough values for one.

The interval is made of two order statistics: the number of values below the true percentile is binomial, so
ranks that leave 2.5 % of that distribution on either side hold it with 95 % (distribution-free; Conover,
Practical Nonparametric Statistics, 3.2). Such ranks exist from n = 6 for p50, 36 for p90, 72 for p95 and 368
for p99; with fewer nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, lgamma, log

ERROR = 0.05


@dataclass(frozen=True, slots=True)
class Percentile:
    """`low` to `high` holds the true one with at least 95 %."""

    value: float
    low: float
    high: float


def percentile(values: Sequence[float], share: float) -> Percentile | None:
    """None where n is too small; `share` is 0..1."""
    ordered, ranks = sorted(values), interval_ranks(len(values), share)
    if ranks is None:
        return None
    low, high = ranks
    return Percentile(ordered[ceil(share * len(ordered)) - 1], ordered[low - 1], ordered[high - 1])


def interval_ranks(n: int, share: float) -> tuple[int, int] | None:
    """Ranks from 1: the highest low and the lowest high one."""
    below = list(accumulate(_binomial(n, k, share) for k in range(n + 1)))
    lows = [rank for rank in range(1, n + 1) if below[rank - 1] <= ERROR / 2]
    highs = [rank for rank in range(1, n + 1) if below[rank - 1] >= 1 - ERROR / 2]
    return (lows[-1], highs[0]) if lows and highs else None


def _binomial(n: int, k: int, share: float) -> float:
    """Through logarithms, since the coefficients of large n are no floats."""
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(share) + (n - k) * log(1 - share))
