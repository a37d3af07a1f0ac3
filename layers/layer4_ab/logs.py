"""From logs of ratios to ratios, whatever files claim: what is beyond all floating point numbers is told as
the largest of them, never as a fault."""

from __future__ import annotations

import math

LARGEST = 690.0
"""As a log: a ratio of 10^299."""


def ratio_of(log: float) -> float:
    """The ratio."""
    return math.exp(_bounded(log))


def less_one(log: float) -> float:
    """The ratio less 1: 0.02 of +2 %."""
    return math.expm1(_bounded(log))


def _bounded(log: float) -> float:
    return max(-LARGEST, min(LARGEST, log))
