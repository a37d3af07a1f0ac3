"""Statistics that several layers share: intervals that make no assumption on the shape of a distribution.

A quantile's interval runs from one order statistic to another, so it exists only from a certain n on; below
it there is none to print. A share's interval is Wilson's, which stays honest at 0 and at 1. All are two-sided
at CONFIDENCE and assume independent values: requests of one run share batches, so the true ones are wider.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
"""The level of every interval that perfkit prints; the field's convention."""

TAIL = (1 - CONFIDENCE) / 2
"""Chance of missing on either side."""


class Ranks(NamedTuple):
    """The order statistics that enclose a quantile, counted from 1."""

    low: int
    high: int


class Estimate(NamedTuple):
    """A value with its interval and the n behind it."""

    value: float
    low: float
    high: float
    n: int


def minimum_n_for_quantile(quantile: float) -> int:
    """The smallest n that gives the quantile an interval: 6 for p50, 36 for p90, 368 for p99.

    All n values lie below quantile q with chance q^n and above it with (1 - q)^n; neither may pass TAIL.
    """
    return math.ceil(math.log(TAIL) / math.log(max(quantile, 1 - quantile)))


def quantile_ranks(n: int, quantile: float) -> Ranks | None:
    """Which two of n sorted values enclose the quantile with at least CONFIDENCE; None where n is too small.

    How many values lie below the quantile is binomial. The ranks are that count's TAIL quantile and its
    1 - TAIL quantile plus 1 (Conover, Practical Nonparametric Statistics, 3.2).
    """
    if n < minimum_n_for_quantile(quantile):
        return None
    return Ranks(_binomial_quantile(TAIL, n, quantile), _binomial_quantile(1 - TAIL, n, quantile) + 1)


def quantile_interval(values: Sequence[float], quantile: float) -> Estimate | None:
    """The sample quantile (linear between neighbours) with its interval; None where n is too small."""
    import numpy as np

    ranks = quantile_ranks(len(values), quantile)
    if ranks is None:
        return None
    ordered = np.sort(np.asarray(values, np.float64))
    value = np.quantile(ordered, quantile)
    return Estimate(float(value), float(ordered[ranks.low - 1]), float(ordered[ranks.high - 1]), len(ordered))


def wilson_interval(hits: int, n: int) -> Estimate:
    """The share hits / n with its score interval (Wilson 1927, no continuity correction); n >= 1."""
    return Estimate(hits / n, *score_bounds(hits / n, n), n)


def score_bounds(share: float, n: float, z: float | None = None) -> tuple[float, float]:
    """Wilson's interval of a share of n > 0 values; n is no whole number where they depend on each other.

    `z` is the number of standard errors to either side (None: the normal one at CONFIDENCE).
    """
    z = NormalDist().inv_cdf(1 - TAIL) if z is None else z
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


def _binomial_quantile(chance: float, n: int, p: float) -> int:
    """The smallest k for which a binomial(n, p) count is at most k with the given chance."""
    from scipy.special import bdtr

    return bisect_left(range(n + 1), chance, key=lambda k: float(bdtr(k, n, p)))
