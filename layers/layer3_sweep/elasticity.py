"""How throughput answers to load from one point to the next: elasticity, with its interval. Pure.

The interval comes from the relative spread of repeats, pooled over all points of the curve: that of two or
three repeats alone is too wide to say anything (t of one degree of freedom is 12.7), and the spread of a
throughput in percent hardly depends on the load. A repeat walks all loads one after the other, so what it
shares (a machine that is slower for these minutes) leaves the ratio of two loads as it is: where every point
has the same repeats they are blocks, and the spread is that of the residuals of a two-way layout (load,
repeat) of the logarithms: Montgomery, Design and Analysis of Experiments, chapter 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from layers.evidence.statistics import TAIL
from layers.layer3_sweep.model import Elasticity, SweepPoint
from layers.layer3_sweep.points import at, rate

DOUBLING = 1.8
"""A load of so many times another is called its double: grids are not all powers of two."""


class Spread(NamedTuple):
    """Relative standard deviation of a throughput between repeats, and its degrees of freedom."""

    relative: float
    freedom: int


def two(value: float) -> str:
    """With two decimals, and never as -0.00."""
    return f"{round(value, 2) + 0:.2f}"


def step_text(step: Elasticity) -> str:
    """`0.03 [-0.01, 0.07] from 32 to 64`."""
    known = step.low is not None and step.high is not None
    interval = f" [{two(step.low or 0)}, {two(step.high or 0)}]" if known else ""
    return f"{two(step.value)}{interval} from {step.start:g} to {step.end:g}"


def pooled_spread(points: Sequence[SweepPoint]) -> Spread | None:
    """Pooled over all points with repeats; None where there is none."""
    squares = [
        ((len(p.passes) - 1), (p.throughput_sd / rate(p)) ** 2)
        for p in points
        if p.throughput_sd is not None and rate(p) > 0
    ]
    freedom = sum(n for n, _ in squares)
    return Spread(math.sqrt(sum(n * square for n, square in squares) / freedom), freedom) if freedom else None


def change_spread(points: Sequence[SweepPoint]) -> Spread | None:
    """The spread that counts for a change from point to point: within repeats, where all points have the same
    ones (at least two); else `pooled_spread`."""
    repeats = {tuple(swept.repeat for swept in p.passes) for p in points}
    alike = len(repeats) == 1 and len(set(*repeats)) == len(next(iter(repeats))) > 1
    if not alike or len(points) < 2 or any(swept.throughput_rps <= 0 for p in points for swept in p.passes):
        return pooled_spread(points)
    import numpy as np

    logs = np.log([[swept.throughput_rps for swept in p.passes] for p in points])
    residuals = logs - logs.mean(1, keepdims=True) - logs.mean(0, keepdims=True) + logs.mean()
    freedom = (logs.shape[0] - 1) * (logs.shape[1] - 1)
    return Spread(math.sqrt(float((residuals**2).sum()) / freedom), freedom)


def throughput_interval(point: SweepPoint, spread: Spread | None) -> tuple[float, float] | None:
    """The 95 % interval of a point's mean throughput, by the pooled spread; None without repeats."""
    if spread is None or not point.stands:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(spread.freedom, 1 - TAIL)) * spread.relative / math.sqrt(len(point.passes))
    return rate(point) * (1 - half), rate(point) * (1 + half)


def elasticities(points: Sequence[SweepPoint]) -> tuple[Elasticity, ...]:
    """From each point that stands to the next one."""
    spread = change_spread(points)
    return tuple(between(a, b, spread) for a, b in itertools.pairwise(points))


def last_doubling(points: Sequence[SweepPoint]) -> tuple[SweepPoint, SweepPoint] | None:
    """The last point and the highest one of at most half its load (the lowest, where there is none); None of
    fewer than two points."""
    if len(points) < 2:
        return None
    last = points[-1]
    below = [p for p in points[:-1] if at(p) * DOUBLING <= at(last)]
    return (below[-1] if below else points[0]), last


def between(a: SweepPoint, b: SweepPoint, spread: Spread | None) -> Elasticity:
    """From one point to one of higher load; both served something."""
    value = math.log(rate(b) / rate(a)) / math.log(at(b) / at(a))
    half = _half_width(a, b, spread)
    low, high = (value - half, value + half) if half is not None else (None, None)
    return Elasticity(at(a), at(b), value, low, high)


def _half_width(a: SweepPoint, b: SweepPoint, spread: Spread | None) -> float | None:
    """Delta method: the variance of ln X is the relative one of X, over the repeats."""
    if spread is None:
        return None
    from scipy.special import stdtrit

    error = spread.relative * math.sqrt(1 / len(a.passes) + 1 / len(b.passes))
    return float(stdtrit(spread.freedom, 1 - TAIL)) * error / math.log(at(b) / at(a))
