"""Interval arithmetic against a brute-force twin: the same sets written out as sets of integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence import intervals
from layers.evidence.intervals import EMPTY, I64, Intervals

Pairs = list[tuple[int, int]]

POINT = st.integers(-12, 12)
PAIRS = st.lists(st.tuples(POINT, POINT), max_size=8)
"""Small numbers, so that intervals overlap, touch, repeat, and come empty and negative all the time."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def columns(pairs: Pairs) -> tuple[I64, I64]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def normal(pairs: Pairs) -> Intervals:
    return intervals.union(*columns(pairs))


def points(pairs: Pairs) -> set[int]:
    """The brute-force twin of a set of intervals."""
    return {point for start, end in pairs for point in range(start, end)}


def pairs_of(of: Intervals) -> Pairs:
    return list(zip(of.start.tolist(), of.end.tolist(), strict=True))


def assert_normal_set_of(of: Intervals, expected: set[int]) -> None:
    """`of` covers the expected points, and is sorted, disjoint, not touching, without empty members."""
    edges = [edge for pair in pairs_of(of) for edge in pair]
    assert edges == sorted(set(edges))
    assert points(pairs_of(of)) == expected
    assert of.start.dtype == of.end.dtype == np.int64


@given(PAIRS)
def test_union_covers_exactly_what_its_members_cover(pairs: Pairs) -> None:
    assert_normal_set_of(normal(pairs), points(pairs))


@given(PAIRS)
def test_total_counts_overlaps_once(pairs: Pairs) -> None:
    assert intervals.total(normal(pairs)) == len(points(pairs))


@given(PAIRS, POINT, POINT)
def test_clip_keeps_what_lies_inside(pairs: Pairs, low: int, high: int) -> None:
    assert_normal_set_of(intervals.clip(normal(pairs), low, high), points(pairs) & set(range(low, high)))


@given(PAIRS, POINT, POINT)
def test_gaps_are_what_the_set_leaves_free(pairs: Pairs, low: int, high: int) -> None:
    assert_normal_set_of(intervals.gaps(normal(pairs), low, high), set(range(low, high)) - points(pairs))


@given(PAIRS, PAIRS)
def test_intersection_is_what_both_cover(a: Pairs, b: Pairs) -> None:
    assert_normal_set_of(intervals.intersect(normal(a), normal(b)), points(a) & points(b))


@given(PAIRS, PAIRS)
def test_subtraction_leaves_what_only_the_first_covers(a: Pairs, b: Pairs) -> None:
    assert_normal_set_of(intervals.subtract(normal(a), normal(b)), points(a) - points(b))


@given(PAIRS, PAIRS)
def test_covered_measures_each_query_on_its_own(pairs: Pairs, queries: Pairs) -> None:
    expected = [len(points(pairs) & set(range(start, end))) for start, end in queries]
    assert intervals.covered(normal(pairs), *columns(queries)).tolist() == expected


@pytest.mark.parametrize("combine", [intervals.intersect, intervals.subtract])
def test_two_empty_sets_combine_to_an_empty_one(combine: Callable[[Intervals, Intervals], Intervals]) -> None:
    assert_normal_set_of(combine(EMPTY, EMPTY), set())


def test_the_empty_set_has_no_length_covers_nothing_and_leaves_everything_free() -> None:
    assert intervals.total(EMPTY) == 0
    assert pairs_of(intervals.gaps(EMPTY, 3, 7)) == [(3, 7)]
    assert intervals.covered(EMPTY, *columns([(0, 5), (5, 0)])).tolist() == [0, 0]


def test_intervals_that_touch_become_one() -> None:
    assert pairs_of(normal([(0, 5), (5, 9)])) == [(0, 9)]


def test_the_whole_int64_range_is_measured_exactly() -> None:
    everything = normal([(INT64_MIN, 0), (0, INT64_MAX)])
    assert pairs_of(everything) == [(INT64_MIN, INT64_MAX)]
    assert intervals.total(everything) == 2**64 - 1


def test_edges_of_int64_are_cut_and_subtracted_without_wrapping() -> None:
    edges = normal([(INT64_MIN, INT64_MIN + 2), (INT64_MAX - 2, INT64_MAX)])
    assert pairs_of(intervals.gaps(edges, INT64_MIN, INT64_MAX)) == [(INT64_MIN + 2, INT64_MAX - 2)]
    assert pairs_of(intervals.clip(edges, INT64_MIN + 1, 0)) == [(INT64_MIN + 1, INT64_MIN + 2)]
    everything = normal([(INT64_MIN, INT64_MAX)])
    assert pairs_of(intervals.subtract(everything, edges)) == [(INT64_MIN + 2, INT64_MAX - 2)]


def test_coverage_is_exact_where_the_answer_fits_int64() -> None:
    edges = normal([(INT64_MIN, INT64_MIN + 2), (INT64_MAX - 3, INT64_MAX)])
    queries = [(INT64_MIN, INT64_MAX), (INT64_MIN, 0), (0, INT64_MAX), (INT64_MAX, INT64_MIN)]
    assert intervals.covered(edges, *columns(queries)).tolist() == [5, 2, 3, 0]
