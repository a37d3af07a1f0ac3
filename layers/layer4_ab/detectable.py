"""What an A/B of so many pairs can see at all: the minimum detectable effect, and the pairs that it takes.

Both are of the whole rule, floor included: the rule itself judges some ten thousand simulated A/Bs of normal
noise, and the effect that it would have claimed in POWER of them is the answer. The spread that it starts
from is the larger of the pairs' and the repeats', and an estimate: a few pairs may know it badly. So each
simulated A/B has a noise of its own, that which would have been estimated so by another one of as many pairs.
With the estimate taken for the truth 3 pairs promise too much (docs/ab.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from layers.layer4_ab.rule import F64, ONE_SIDED, TWO_SIDED, repeat_spread, widths

POWER = 0.8
"""Chance of claiming an effect of the minimum detectable size; the field's convention (Cohen 1988)."""
DRAWS = 20_000
"""The chance of a claim is then known to 0.3 points (one standard error)."""
SEARCH_DRAWS = 4_000
"""While pairs are searched for: 0.6 points."""
MOST_PAIRS = 100
"""Beyond that another protocol is the answer, not more pairs."""
SEED = 20_260_901


class _Simulated(NamedTuple):
    """A/Bs without an effect, in units of the pairs' true spread: means, what each mean had to pass, and the
    spread that other A/Bs of as many pairs find."""

    means: F64
    to_differ: F64
    to_be_equivalent: F64
    found: F64


def detectable(pairs: int, spread: float, outside_floor: float = 0.0, draws: int = DRAWS) -> float:
    """The log-ratio that a further A/B claims with chance POWER, where one found this spread; pairs >= 2."""
    simulated = _simulated(pairs, draws)
    noise = spread / simulated.found
    needed = np.maximum(simulated.to_differ * noise, outside_floor) - simulated.means * noise
    return float(np.quantile(needed, POWER))


def provable_margin(pairs: int, spread: float, outside_floor: float = 0.0, draws: int = DRAWS) -> float:
    """The smallest margin within which arms that do not differ are shown equivalent with chance POWER."""
    simulated = _simulated(pairs, draws)
    width = np.maximum(simulated.to_be_equivalent * spread, outside_floor)
    return float(np.quantile(np.abs(simulated.means) * spread + width, POWER))


def pairs_needed(effect: float, spread: float, outside_floor: Callable[[int], float]) -> int | None:
    """The fewest pairs (an even number, as ABBA asks) that detect an effect; None above MOST_PAIRS.

    `outside_floor` gives the floor for a number of pairs: one that rests on a spread shrinks with them.
    """
    return _fewest(effect, lambda n: detectable(n, spread, outside_floor(n), SEARCH_DRAWS))


def pairs_for_margin(margin: float, spread: float, outside_floor: Callable[[int], float]) -> int | None:
    """The fewest pairs that show arms that do not differ to be equivalent within a margin."""
    return _fewest(margin, lambda n: provable_margin(n, spread, outside_floor(n), SEARCH_DRAWS))


def _fewest(wanted: float, seen_with: Callable[[int], float]) -> int | None:
    """By halving over the even numbers: what is seen only gets smaller with more pairs."""
    if wanted <= 0 or seen_with(MOST_PAIRS) > wanted:
        return None
    low, high = 1, MOST_PAIRS // 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if seen_with(2 * middle) <= wanted else (middle + 1, high)
    return 2 * high


@cache
def _simulated(pairs: int, draws: int) -> _Simulated:
    random = np.random.default_rng(SEED)
    a, b = _starts(random, draws, pairs)
    differences = b - a
    spread, repeats = differences.std(-1, ddof=1), repeat_spread(a, b)
    two_sided, one_sided = (
        np.maximum(*widths(pairs, spread, repeats, quantile)) for quantile in (TWO_SIDED, ONE_SIDED)
    )
    others = _starts(random, draws, pairs)
    found = np.maximum((others[1] - others[0]).std(-1, ddof=1), repeat_spread(*others))
    return _Simulated(differences.mean(-1), two_sided, one_sided, found)


def _starts(random: np.random.Generator, draws: int, pairs: int) -> tuple[F64, F64]:
    """Starts of both arms, whose differences have a spread of 1."""
    a, b = random.standard_normal((2, draws, pairs)) / math.sqrt(2)
    return a, b
