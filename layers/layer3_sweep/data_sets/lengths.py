"""Lengths of made-up items: how many words, tokens or seconds each has.

Lengths are laid out evenly over their distribution and then shuffled, so that two sets of the same size and
distribution hold the same amount of work: a draw at random would differ from set to set by as much as a sweep
wants to tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from parsers.errors import UsageError
from parsers.series_model import F64

MANY, FEW = 0.8, 0.2
"""Of the items, and of the range that they lie in: 80 % in the nearest fifth of it."""


class Shape(StrEnum):
    """How lengths lie between the shortest and the longest."""

    SHORT_HEAVY = "short-heavy"
    """80 % in the lowest fifth of the range"""
    UNIFORM = "uniform"
    LONG_HEAVY = "long-heavy"
    """80 % in the highest fifth"""


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths from `low` to `high`, both possible."""

    shape: Shape
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise UsageError(
                f"lengths from {self.low:g} to {self.high:g}: give two that are above 0 and rise"
            )

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} {self.shape}"

    def draw(self, n: int, rng: np.random.Generator) -> F64:
        """n lengths, shape (n,), in an order by chance."""
        places = (np.arange(n) + 0.5) / n
        return self.low + (self.high - self.low) * rng.permutation(_quantiles(self.shape, places))


def _quantiles(shape: Shape, places: F64) -> F64:
    """Where in the range 0..1 the item at each place of 0..1 lies."""
    if shape is Shape.UNIFORM:
        return places
    if shape is Shape.LONG_HEAVY:
        return 1 - _quantiles(Shape.SHORT_HEAVY, 1 - places)
    return np.interp(places, [0, MANY, 1], [0, FEW, 1])
