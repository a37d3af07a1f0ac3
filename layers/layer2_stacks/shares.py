"""A leaf's share of ticks, and how far it can be trusted: ticks close in time resemble each other.

Two intervals are made and the wider one is claimed. Wilson's, on the ticks divided by the *design effect*
(true variance over that of independent ticks), which is the larger of two estimates: between captures
(Pearson's chi-square over its degrees of freedom; t's quantile replaces the normal's, since few captures
estimate it) and within them (means of stretches of BATCH_S, for files that keep the order). And, from
T_CAPTURES captures on, Student's t over the captures' own shares, which supposes nothing about ticks. Two
captures have no t worth printing: their range widens the interval instead. Simulated coverage:
benchmarks/stack_coverage.py. No bootstrap: 3 captures have 10 resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from layers.evidence.statistics import CONFIDENCE, TAIL, score_bounds
from layers.layer2_stacks.model import Share

T_CAPTURES = 3
"""With 2 captures t has one degree of freedom and spans nearly everything."""
BATCH_S = 2.5
"""Longer than what ties ticks to each other in a steady loop, short enough for 10 in 25 s: perfkit's choice,
tried on public dask and vLLM captures."""
MIN_BATCHES = 4
"""Fewer tell nothing of a variance: perfkit's choice."""

COCHRAN_HITS = 5
"""Expected hits in each capture below which chi-square says nothing (Cochran 1954)."""


def estimate(hits: Sequence[int], ticks: Sequence[int], within: float | None = None) -> Share:
    """The share of `hits` in `ticks`, both per capture; captures without ticks are left out.

    `within` is a design effect seen inside captures. ValueError where there is no tick at all.
    """
    seen = [(hit, n) for hit, n in zip(hits, ticks, strict=True) if n]
    if not seen:
        raise ValueError("no capture has a tick of this scope")
    total_hits, total = sum(hit for hit, _ in seen), sum(n for _, n in seen)
    shares = tuple(hit / n for hit, n in seen)
    value = total_hits / total
    own = between(seen)
    effect = design_effect([own, within])
    errors = _standard_errors(own, effect, len(seen))
    low, high = score_bounds(value, total / (effect or 1.0), errors)
    method = f"Wilson, {_effect_words(effect)}" + (f" from {len(seen)} captures" if errors else "")
    wider = _over_captures(shares)
    if wider is not None and wider[1] - wider[0] > high - low:
        low, high, method = wider
    low, high = min(low, value), max(high, value)  # at 0 and 1 rounding errors lie outside
    return Share(total_hits, total, value, low, high, method, effect, shares, _agree(seen, value))


def between(seen: Sequence[tuple[int, int]]) -> float | None:
    """Design effect from (hits, ticks) of several captures, not clipped at 1; None: it cannot be told."""
    total = sum(n for _, n in seen)
    share = sum(hit for hit, _ in seen) / total
    if len(seen) < 2 or not 0 < share < 1:
        return None
    chi_square: float = sum(n * (hit / n - share) ** 2 for hit, n in seen) / (share * (1 - share))
    return chi_square / (len(seen) - 1)


def within(series: Sequence[npt.NDArray[np.bool_]], batch: int) -> float | None:
    """Design effect from samples in order, one array of hits a capture, cut into stretches of `batch` ticks.

    The variance of the stretches' means around their capture's, over what independent ticks would have.
    """
    means = [
        hits[: len(hits) // batch * batch].reshape(-1, batch).mean(axis=1)
        for hits in series
        if len(hits) // batch >= MIN_BATCHES
    ]
    if not means:
        return None
    share = float(np.concatenate(means).mean())
    if not 0 < share < 1:
        return None
    squares: float = sum(float(((m - m.mean()) ** 2).sum()) for m in means)
    freedom = sum(len(m) - 1 for m in means)
    return batch * squares / (freedom * share * (1 - share))


def design_effect(estimates: Sequence[float | None]) -> float | None:
    """The largest of the estimates there are, at least 1: dependence never makes ticks worth more."""
    known = [e for e in estimates if e is not None]
    return max(1.0, *known) if known else None


def smallest_visible(ticks: int, effect: float | None) -> float:
    """The share that would have been hit at least once with 95 % chance: the exact one-sided bound of 0 hits.

    On ticks over the design effect: 0 of 300 independent ticks still allow 1.0 %.
    """
    return 1.0 - math.pow(1 - CONFIDENCE, (effect or 1.0) / ticks)


def _standard_errors(own: float | None, effect: float | None, captures: int) -> float | None:
    """Student's t where the effect was estimated from few captures (and is above 1); else the normal's."""
    if own is None or own <= 1.0 or own != effect or captures < T_CAPTURES:
        return None
    from scipy.stats import t

    return float(t.ppf(1 - TAIL, captures - 1))


def _over_captures(shares: Sequence[float]) -> tuple[float, float, str] | None:
    """The interval that the captures' own shares give, and its name; None with one capture."""
    if len(shares) < 2:
        return None
    if len(shares) < T_CAPTURES:
        return min(shares), max(shares), f"range of {len(shares)} captures"
    from scipy.stats import t

    half_width = float(t.ppf(1 - TAIL, len(shares) - 1)) * stdev(shares) / math.sqrt(len(shares))
    centre = fmean(shares)
    return max(0.0, centre - half_width), min(1.0, centre + half_width), f"t over {len(shares)} captures"


def _agree(seen: Sequence[tuple[int, int]], share: float) -> bool | None:
    """Whether independent ticks alone explain how the captures differ: Pearson's chi-square at CONFIDENCE."""
    smallest = min(n for _, n in seen) * min(share, 1 - share)
    effect = between(seen)
    if effect is None or smallest < COCHRAN_HITS:
        return None
    from scipy.stats import chi2

    freedom = len(seen) - 1
    return bool(effect * freedom <= chi2.ppf(CONFIDENCE, freedom))


def _effect_words(effect: float | None) -> str:
    return "ticks taken as independent" if effect is None else f"design effect {effect:.1f}"
