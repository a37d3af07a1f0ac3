"""Runs that are left out by a rule made beforehand, never by a look at them.

A value is an outlier where it is far by the robust spread and far by its size; both, since runs that repeat
to 0.1 % make any 1 % look far. Where the far values are a group of their own the arm has two states, and no
rule may choose between them: nothing is left out, and the guard on two states says so. The first round is
left out of both arms where the rule takes it out of at least half of the series that it can judge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

ROBUST_Z = 3.5
"""Modified z of an outlier: Iglewicz and Hoaglin 1993; SGLang-Omni's calibration contract uses the same."""
GAP_SHARE = 0.20
"""Of the median of the other values: SGLang-Omni's calibration contract."""
LEAST_VALUES = 5
"""Below that a median and its spread say nothing of the rest: SGLang-Omni's calibration contract."""
GROUP_LEAST, GROUP_SHARE = 2, 0.25
"""perfkit's choice: so many of the values together are a state of the server, no accident."""
MAD_TO_SD = 1.4826
"""Of a normal distribution."""


class Rejection(NamedTuple):
    """Which values go, by index; `two_states`: there are two groups, and so none of them goes."""

    outliers: frozenset[int]
    two_states: bool = False


def rejection(values: Sequence[float]) -> Rejection:
    """Judge the values of one arm at one load."""
    if len(values) < LEAST_VALUES:
        return Rejection(frozenset())
    far = frozenset(i for i in range(len(values)) if _is_far(values, i))
    group = max(GROUP_LEAST, math.ceil(GROUP_SHARE * len(values)))
    if len(far) >= group or _split(values, group):
        return Rejection(frozenset(), two_states=True)
    return Rejection(far)


def first_round_is_one(series: Sequence[Sequence[float]]) -> bool:
    """Whether the first of each series is an outlier among the rest of it."""
    judged = [rejection(one).outliers for one in series if len(one) >= LEAST_VALUES]
    return bool(judged) and 2 * sum(0 in outliers for outliers in judged) >= len(judged)


def _is_far(values: Sequence[float], index: int) -> bool:
    middle = float(np.median(values))
    spread = MAD_TO_SD * float(np.median(np.abs(np.asarray(values) - middle)))
    others = float(np.median([*values[:index], *values[index + 1 :]]))
    apart = abs(values[index] - middle) > ROBUST_Z * spread
    return apart and abs(values[index] - others) > GAP_SHARE * abs(others)


def _split(values: Sequence[float], group: int) -> bool:
    """Whether the widest gap parts two groups, each closer together than the gap is wide."""
    ordered = sorted(values)
    gaps = [high - low for low, high in pairwise(ordered)]
    at = int(np.argmax(gaps)) + 1
    low, high = ordered[:at], ordered[at:]
    ranges = max(low[-1] - low[0], high[-1] - high[0])
    wide = gaps[at - 1] > GAP_SHARE * abs(float(np.median(values)))
    return min(len(low), len(high)) >= group and wide and gaps[at - 1] > ranges
