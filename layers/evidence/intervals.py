"""Interval arithmetic on numpy arrays: union, intersection, subtraction, gaps, clipping.

An interval set is a pair of int64 arrays (start, end) in any one unit, half-open [start, end). Functions that
return a set return it *normal*: sorted, disjoint, without empty members, touching members joined. Inputs may
overlap, be unsorted and hold empty members unless the docstring asks for a normal set. All is O(n log n) at
most and vectorised, since traces hold millions of them. Any int64 may be an end point: a length that passes
int64 wraps in numpy, and comes out right again where the result is a Python int or fits int64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """A set of half-open intervals; both arrays have shape (n,)."""

    start: I64
    end: I64


HALF_BITS = 32
"""Numbers of so many bits can be summed in 64 for as many as a table can hold."""
EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: I64, end: I64) -> Intervals:
    """The normal set that covers what the given intervals cover; empty and negative ones cover nothing."""
    full = end > start
    start, end = start[full], end[full]
    if not len(start):
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.empty(len(start), bool)
    opens[0] = True
    np.greater(start[1:], reach[:-1], out=opens[1:])
    last = np.flatnonzero(np.append(opens[1:], True))
    return Intervals(start[opens], reach[last])


def total(of: Intervals) -> int:
    """Length of a normal set, exact for any of them: the sum wraps modulo 2^64, and no length passes that."""
    return int((of.end - of.start).sum()) % 2**64


def exact_sum(lengths: I64) -> int:
    """The sum of lengths that are not negative, whatever it passes."""
    high, low = int((lengths >> HALF_BITS).sum()), int((lengths & ((1 << HALF_BITS) - 1)).sum())
    return (high << HALF_BITS) + low


def clip(of: Intervals, low: int, high: int) -> Intervals:
    """The part of a normal set inside [low, high)."""
    start, end = np.maximum(of.start, low), np.minimum(of.end, high)
    full = end > start
    return Intervals(start[full], end[full])


def gaps(of: Intervals, low: int, high: int) -> Intervals:
    """What a normal set leaves free of [low, high)."""
    if high <= low:
        return EMPTY
    inside = clip(of, low, high)
    start = np.concatenate(([low], inside.end)).astype(np.int64)
    end = np.concatenate((inside.start, [high])).astype(np.int64)
    full = end > start
    return Intervals(start[full], end[full])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What two normal sets share."""
    first = np.searchsorted(b.end, a.start, side="right")
    last = np.searchsorted(b.start, a.end, side="left")
    counts = np.maximum(last - first, 0)
    left = np.repeat(np.arange(len(a.start)), counts)
    offsets = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.repeat(first, counts) + offsets
    return Intervals(np.maximum(a.start[left], b.start[right]), np.minimum(a.end[left], b.end[right]))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What a normal set keeps when another is taken away."""
    if not len(a.start):
        return EMPTY
    return intersect(a, gaps(b, int(a.start[0]), int(a.end[-1])))


def covered(of: Intervals, start: I64, end: I64) -> I64:
    """How much of each query interval [start_i, end_i) a normal set covers; shape (m,), 0 for empty queries.

    Exact where the answer fits int64 (292 years of nanoseconds).
    """
    return _measure_below(of, np.maximum(end, start)) - _measure_below(of, start)


def _measure_below(of: Intervals, at: I64) -> I64:
    """Length of the part of a normal set below each point of `at`."""
    if not len(of.start):
        return np.zeros(len(at), np.int64)
    before = np.concatenate(([0], np.cumsum(of.end - of.start)))
    index = np.searchsorted(of.start, at, side="right")
    inside = np.where(index > 0, np.minimum(at, of.end[index - 1]) - of.start[index - 1], 0)
    return before[np.maximum(index - 1, 0)] + inside
