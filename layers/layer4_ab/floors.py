"""The A/A floor: how far two runs of the same thing differ under the same protocol.

A floor from outside the A/B comes from A/A runs of the same session, or from earlier ones on this machine.
Three or more runs give a spread, and the floor is what a mean of so many pairs reaches by chance; two give
one ratio, which is the floor as it is and is called a single observation. A floor only ever takes claims
away: the interval of an A/B always rests on its own pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import stdev

from layers.evidence.statistics import TAIL

LEAST_FOR_SPREAD = 3
"""Two runs give one ratio, and no spread of ratios."""


class FloorKind(StrEnum):
    """Where a floor comes from."""

    REPEATS = "repeats"
    """starts of an arm against the next of the same arm, inside this A/B"""
    MEASURED = "a-a-runs"
    """runs of one configuration under the same protocol, beside this A/B"""
    HISTORY = "history"
    """such runs of earlier sessions on the same machine, at the same load"""


@dataclass(frozen=True, slots=True)
class Floor:
    """`spread`: of the log-ratio of two runs of the same thing, or that ratio itself where it is the only
    one. `runs` is how many are behind it."""

    kind: FloorKind
    spread: float
    runs: int
    freedom: int

    @property
    def single(self) -> bool:
        """Whether it is one ratio and no spread."""
        return self.freedom == 0

    def of(self, pairs: int) -> float:
        """The log-ratio that the mean of so many pairs stays within by chance."""
        if self.single:
            return self.spread
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - TAIL)) * self.spread / math.sqrt(pairs)


def floor_of_runs(logs: Sequence[float], kind: FloorKind = FloorKind.MEASURED) -> Floor | None:
    """The floor that runs of one configuration set, from the logs of one number a run; None below two."""
    if len(logs) < 2:
        return None
    if len(logs) < LEAST_FOR_SPREAD:
        return Floor(kind, abs(logs[1] - logs[0]), len(logs), 0)
    return Floor(kind, math.sqrt(2) * stdev(logs), len(logs), len(logs) - 1)


def pooled(floors: Sequence[Floor]) -> Floor | None:
    """Earlier floors as one, their spreads weighted by freedom; of single ratios alone their root mean
    square, each of which has one degree of freedom about its known mean, 0."""
    if not floors:
        return None
    freedom = [max(1, floor.freedom) for floor in floors]
    squares = sum(n * floor.spread**2 for n, floor in zip(freedom, floors, strict=True))
    runs = sum(floor.runs for floor in floors)
    if len(floors) == 1:
        return Floor(FloorKind.HISTORY, floors[0].spread, runs, floors[0].freedom)
    return Floor(FloorKind.HISTORY, math.sqrt(squares / sum(freedom)), runs, sum(freedom))
