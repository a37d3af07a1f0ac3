"""Right and wrong answers to the same items in two arms: McNemar's exact test, and what it could have found.

Only items that are right in one arm and wrong in the other say anything; under no effect they fall either way
with chance 1/2. A large p is no proof of sameness: `detectable_share` is the smallest loss that this test, on
as many items with as many answers that flip by themselves, would have called one in POWER of cases.
(McNemar 1947; exact form and power from the binomial, after Connor 1987.)
"""

from __future__ import annotations

import numpy as np

from layers.evidence.statistics import CONFIDENCE
from parsers.series_model import F64

ALPHA = 1 - CONFIDENCE
POWER = 0.80
"""Of a true loss, how often it would be found: the field's convention."""
STEPS = 40
"""Halvings of the interval that the detectable loss is searched in."""
WIDE_SD = 8.0
"""Standard errors to either side of the number of items that flip; beyond it there is no weight."""


def exact_p(lost: int, gained: int) -> float:
    """Two-sided exact p of so many items lost and gained; 1 where none flipped."""
    from scipy.stats import binom

    n = lost + gained
    if not n:
        return 1.0
    return min(1.0, 2 * float(binom.cdf(min(lost, gained), n, 0.5)))


def detectable_share(n: int, lost: int, gained: int) -> float | None:
    """The smallest share of n items whose loss would be found with POWER; None where not even all would be.

    Items that flip by themselves are taken from what was seen: twice the smaller of both counts.
    """
    background = min(lost, gained) / n if n else 0.0
    low, high = 0.0, 1.0 - 2 * background
    if n < 1 or _power(n, background, high) < POWER:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(n, background, middle) >= POWER else (middle, high)
    return high


def unseen_share(n: int) -> float:
    """What 0 of n independent items still allow, with CONFIDENCE: the exact one-sided bound."""
    return float(1 - ALPHA ** (1 / n))


def _power(n: int, background: float, loss: float) -> float:
    """How often a loss is called one, where `background` of the items flip either way besides."""
    from scipy.stats import binom

    flips = loss + 2 * background
    if flips <= 0:
        return 0.0
    spread = WIDE_SD * np.sqrt(n * flips * (1 - flips)) + 1
    counts = np.arange(max(0, int(n * flips - spread)), min(n, int(n * flips + spread) + 1) + 1)
    critical = _critical(counts)
    found = binom.sf(critical - 1, counts, (loss + background) / flips)
    return float(np.sum(binom.pmf(counts, n, min(1.0, flips)) * np.where(counts > 0, found, 0.0)))


def _critical(counts: F64 | np.ndarray[tuple[int], np.dtype[np.int64]]) -> F64:
    """Of each number of flips, how many must be losses for p to reach ALPHA; more than all where none do."""
    from scipy.stats import binom

    critical: F64 = binom.isf(ALPHA / 2, counts, 0.5) + 1
    return critical
