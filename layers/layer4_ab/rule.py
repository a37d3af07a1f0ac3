"""The rule that decides an A/B: paired log-ratios of server starts against two yardsticks.

An effect is claimed where its mean passes both the paired t interval and the A/A floor. The floor is never
less than what the repeats of an arm show: neighbouring starts of the same arm, compared as if they were A and
B. Without it rounds that depend on each other make a paired t interval alone claim 6 to 7 % of the time
(docs/ab.md has the table). Every function works along the last axis, so that a simulation of thousands of
A/Bs runs the very rule that judges one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from layers.evidence.statistics import CONFIDENCE, TAIL

F64 = NDArray[np.float64]
Booleans = NDArray[np.bool_]

TWO_SIDED = 1 - TAIL
"""Quantile of a two-sided interval at CONFIDENCE."""
ONE_SIDED = CONFIDENCE
"""Quantile of each of the two one-sided tests of equivalence (Schuirmann 1987)."""
LEAST_PAIRS = 2
"""One pair has no spread."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """The rule's numbers, each an array of the leading shape; ratios as natural logs of B over A.

    `spread` is the standard deviation of the pairs' log-ratios, `repeat_spread` that of an arm against
    itself. `differs`: claimed to differ; `equivalent`: shown to lie inside the margin.
    """

    mean: F64
    spread: F64
    repeat_spread: F64
    half_width: F64
    floor: F64
    p: F64
    differs: Booleans
    equivalent: Booleans


def rule(a: F64, b: F64, outside_floor: float = 0.0, margin: float | None = None) -> Ruled:
    """Judge pairs of logs of starts (last axis: pairs in their order, two or more).

    `outside_floor` is what A/A runs beside this A/B, or before it, set; `margin` the largest difference that
    does not matter, both as logs.
    """
    differences = b - a
    pairs = differences.shape[-1]
    mean, spread = differences.mean(-1), differences.std(-1, ddof=1)
    repeats = repeat_spread(a, b)
    half, floor = widths(pairs, spread, repeats, TWO_SIDED)
    floor = np.maximum(floor, outside_floor)
    return Ruled(
        mean=mean,
        spread=spread,
        repeat_spread=repeats,
        half_width=half,
        floor=floor,
        p=_p_value(mean, spread / np.sqrt(pairs), pairs - 1),
        differs=np.abs(mean) > np.maximum(half, floor),
        equivalent=_equivalent(mean, pairs, spread, repeats, outside_floor, margin),
    )


def repeat_spread(a: F64, b: F64) -> F64:
    """The root mean square of log-ratios between neighbouring starts of the same arm, over both arms.

    Neighbours do not overlap, so 2 m starts of an arm give m of them. They have the spread that pairs have
    where A and B do not differ, whatever lies between them: a drift, and rounds that depend on each other,
    raise it.
    """
    even = a.shape[-1] // 2 * 2
    apart = [arm[..., 0:even:2] - arm[..., 1:even:2] for arm in (a, b)]
    squares: F64 = np.concatenate(apart, -1) ** 2
    root: F64 = np.sqrt(squares.mean(-1))
    return root


def widths(pairs: int, spread: F64, repeats: F64, quantile: float) -> tuple[F64, F64]:
    """Half of the paired t interval, and the floor that the repeats set, at a quantile of Student's t."""
    own = stdtrit(pairs - 1, quantile) * spread / np.sqrt(pairs)
    floor = stdtrit(repeat_freedom(pairs), quantile) * repeats / np.sqrt(pairs)
    return own, floor


def repeat_freedom(pairs: int) -> int:
    """Degrees of freedom of `repeat_spread`: its log-ratios have a known mean, 0."""
    return pairs // 2 * 2


def _equivalent(
    mean: F64, pairs: int, spread: F64, repeats: F64, outside_floor: float, margin: float | None
) -> Booleans:
    """Both one-sided tests reject, with the wider of the two yardsticks as their error."""
    if margin is None:
        return np.zeros(np.shape(mean), np.bool_)
    own, floor = widths(pairs, spread, repeats, ONE_SIDED)
    inside: Booleans = np.abs(mean) + np.maximum(np.maximum(own, floor), outside_floor) < margin
    return inside


def _p_value(mean: F64, error: F64, freedom: int) -> F64:
    """Two-sided, of the paired t test; pairs without any spread give 0, or 1 where their mean is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / error
    p: F64 = 2 * stdtr(freedom, -np.where(np.isnan(t), 0.0, t))
    return p
