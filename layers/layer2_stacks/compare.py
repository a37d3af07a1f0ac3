"""Two sets of captures of one thread: which lines hold more or less of it, and could that be chance?

The interval of a difference is put together from those of the two shares (MOVER: square and add, Zou and
Donner 2008), so that it is as wide as dependence between ticks makes them. A line that one side never hit has
no interval of its own: it gets the one-sided exact bound on its ticks over the design effect, which other
lines of the same thread tell. Many lines are compared at once, so `clear` goes by the false discovery rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

from layers.evidence.statistics import CONFIDENCE, TAIL
from layers.layer2_stacks.model import Row, ScopeAnalysis, Share
from layers.layer2_stacks.wording import place

RowKey = tuple[str, str]
LINES_COMPARED = 20
"""The first of either side: rarer lines have intervals that hold anything."""


RowsOf = Callable[[ScopeAnalysis], Sequence[Row]]


def _lines_of(scope: ScopeAnalysis) -> Sequence[Row]:
    return scope.lines


class Steadiness(StrEnum):
    """What a line did between two sets of captures."""

    ONE_OFF = "one-off"
    """it is clearly less, and later it may be nothing"""
    STEADY = "steady"
    """later it is there, and not clearly less"""
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class LineChange:
    """One line on both sides; `low` and `high` enclose `difference` (after - before, as shares)."""

    where: str
    function: str
    before: Share
    after: Share
    difference: float
    low: float
    high: float
    clear: bool

    @property
    def place(self) -> str:
        return place(self.where, self.function)

    @property
    def steadiness(self) -> Steadiness:
        if self.clear and self.difference < 0 and self.after.hits == 0:
            return Steadiness.ONE_OFF
        return Steadiness.STEADY if self.after.hits and not self.clear else Steadiness.CHANGED


def compare_scopes(before: ScopeAnalysis, after: ScopeAnalysis) -> tuple[LineChange, ...]:
    """The first lines of either side, the largest change first. Both must be of one mode and one thread."""
    return _compare(before, after, lambda scope: scope.lines)


def compare_functions(before: ScopeAnalysis, after: ScopeAnalysis) -> tuple[LineChange, ...]:
    """The same of functions, whose lines may have moved in between."""
    return _compare(before, after, lambda scope: scope.functions)


def _compare(before: ScopeAnalysis, after: ScopeAnalysis, rows_of: RowsOf) -> tuple[LineChange, ...]:
    rows = [row for scope in (before, after) for row in rows_of(scope)[:LINES_COMPARED]]
    keys = dict.fromkeys((row.where, row.function) for row in rows)
    changes = [share_change(key, before, after, rows_of) for key in keys]
    return tuple(sorted(_clear(changes), key=lambda c: (-abs(c.difference), c.where)))


def share_change(
    key: RowKey, before: ScopeAnalysis, after: ScopeAnalysis, rows_of: RowsOf = _lines_of
) -> LineChange:
    """One line, by (where, function), whether a side hit it or not; `clear` as if it were the only one."""
    old, new = share_of(key, before, rows_of), share_of(key, after, rows_of)
    difference = new.value - old.value
    low, high = interval_of_difference(old, new)
    return LineChange(*key, old, new, difference, low, high, not low <= 0 <= high)


def interval_of_difference(old: Share, new: Share) -> tuple[float, float]:
    """The 95 % interval of new - old, put together from those of the two shares."""
    difference = new.value - old.value
    low = difference - math.hypot(new.value - new.low, old.high - old.value)
    high = difference + math.hypot(new.high - new.value, old.value - old.low)
    return max(low, -1.0), min(high, 1.0)


def share_of(key: RowKey, scope: ScopeAnalysis, rows_of: RowsOf = _lines_of) -> Share:
    """The line's share; of one that was never hit, 0 with its bound."""
    row = next((r for r in rows_of(scope) if (r.where, r.function) == key), None)
    return row.share if row is not None else unseen(scope)


def unseen(scope: ScopeAnalysis) -> Share:
    """No hit in all ticks: at most `smallest_visible`, with 95 % chance."""
    effect = scope.design_effect
    over = "" if effect is None else f" on {scope.total_ticks / effect:,.0f} independent ticks"
    return Share(
        hits=0,
        ticks=scope.total_ticks,
        value=0.0,
        low=0.0,
        high=scope.smallest_visible,
        method=f"exact one-sided bound of 0 hits{over}",
        design_effect=effect,
        per_capture=tuple(0.0 for n in scope.ticks if n),
        agrees=None,
    )


def _clear(changes: Sequence[LineChange]) -> list[LineChange]:
    """`clear` where the false discovery rate over all lines compared allows it (Benjamini and Hochberg)."""
    from scipy.stats import false_discovery_control

    if not changes:
        return []
    allowed = false_discovery_control([_p_value(change) for change in changes]) <= 1 - CONFIDENCE
    return [replace(c, clear=c.clear and bool(may)) for c, may in zip(changes, allowed, strict=True)]


def _p_value(change: LineChange) -> float:
    """Two-sided, of no difference, by the side of the interval that lies towards 0."""
    towards = change.difference - change.low if change.difference > 0 else change.high - change.difference
    if not change.difference:
        return 1.0
    z = NormalDist().inv_cdf(1 - TAIL)
    deviations = abs(change.difference) / max(towards / z, math.ulp(1.0))
    return 2 * NormalDist().cdf(-deviations)
