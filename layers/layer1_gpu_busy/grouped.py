"""Interval arithmetic within groups (operations of a stream, calls of a thread), all groups in one pass.

Everything rests on one question that one sorted pass answers for every interval: how far do the earlier
intervals of its own group reach? A gap is a start beyond that reach, the newly covered length what sticks out
of it, and an interval that stays below it lies inside an earlier one. Groups may number millions; no loop
runs over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.trace_model import I64, Bools

Groups = npt.NDArray[np.integer[Any]]
"""A number for each interval that says which group it belongs to; shape (n,)."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Intervals sorted by (group, start, longest first); all arrays have shape (n,).

    `order` sorts the input rows. `reach_ns[i]` is the largest end among the earlier rows of the group of row
    i, and row i's own start where it is the first: a first interval has no gap before it and covers all of
    itself.
    """

    order: I64
    start_ns: I64
    end_ns: I64
    reach_ns: I64
    first: Bools


def reach(group: Groups, start_ns: I64, end_ns: I64) -> Reach:
    """How far the earlier intervals of each group reach at each interval; O(n log n)."""
    order = np.lexsort((-end_ns, start_ns, group))
    group, start_ns, end_ns = group[order], start_ns[order], end_ns[order]
    n = len(order)
    first = np.ones(n, bool)
    first[1:] = group[1:] != group[:-1]
    by_end = np.argsort(end_ns, kind="stable")
    rank = np.empty(n, np.int64)
    rank[by_end] = np.arange(n)
    # A later group's ranks all pass an earlier group's, so the running maximum starts anew in each group.
    key = np.maximum.accumulate((np.cumsum(first) - 1) * n + rank)
    before = start_ns.copy()
    before[1:] = np.where(first[1:], start_ns[1:], end_ns[by_end[key[:-1] % n]])
    return Reach(order, start_ns, end_ns, before, first)


def inside_earlier(group: Groups, start_ns: I64, end_ns: I64) -> Bools:
    """Which intervals lie wholly inside the reach of an earlier one of their group; in the input's order.

    Of two equal intervals the second does. Of two that merely overlap (children that end after their parents,
    as profilers write them) neither does.
    """
    r = reach(group, start_ns, end_ns)
    nested = np.empty(len(r.order), bool)
    nested[r.order] = ~r.first & (r.end_ns <= r.reach_ns) & (r.start_ns < r.reach_ns)
    return nested


def union_length(group: Groups, start_ns: I64, end_ns: I64, groups: int) -> I64:
    """Length of the union of the intervals of each group 0..groups-1; shape (groups,)."""
    r = reach(group, start_ns, end_ns)
    added = np.concatenate(([0], np.cumsum(np.maximum(r.end_ns - np.maximum(r.start_ns, r.reach_ns), 0))))
    edges = np.searchsorted(group[r.order], np.arange(groups + 1))
    return added[edges[1:]] - added[edges[:-1]]
