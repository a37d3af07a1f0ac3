"""Grouped interval arithmetic against plain loops over each group."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.grouped import inside_earlier, reach, union_length

GROUPS = 3
Row = tuple[int, int, int]
rows = st.lists(
    st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 20), st.integers(0, 6)).map(
        lambda r: (r[0], r[1], r[1] + r[2])
    ),
    max_size=12,
)


def columns(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    group, start, end = np.array(rows, np.int64).reshape(-1, 3).T
    return group, start, end


@given(rows)
def test_union_length_counts_each_moment_of_a_group_once(rows: list[Row]) -> None:
    moments = [
        {t for g, start, end in rows if g == group for t in range(start, end)} for group in range(GROUPS)
    ]
    assert union_length(*columns(rows), GROUPS).tolist() == [len(m) for m in moments]


@given(rows)
def test_reach_is_the_largest_end_among_earlier_rows_of_the_group(rows: list[Row]) -> None:
    r = reach(*columns(rows))
    in_order = [rows[i] for i in r.order]
    for i, (group, start, _) in enumerate(in_order):
        earlier = [end for g, _, end in in_order[:i] if g == group]
        assert r.reach_ns[i] == (max(earlier) if earlier else start)


@given(rows)
def test_rows_come_by_group_then_start_then_longest_first(rows: list[Row]) -> None:
    order = [rows[i] for i in reach(*columns(rows)).order]
    assert [(g, s, -e) for g, s, e in order] == sorted((g, s, -e) for g, s, e in rows)


def test_a_child_inside_its_parent_is_found_and_one_that_ends_after_it_is_not() -> None:
    parent, child, overhanging, other_group = (0, 0, 100), (0, 10, 100), (0, 50, 101), (1, 10, 20)
    assert inside_earlier(*columns([parent, child, overhanging, other_group])).tolist() == [
        False,
        True,
        False,
        False,
    ]


def test_of_two_equal_intervals_one_is_inside_the_other() -> None:
    assert inside_earlier(*columns([(0, 5, 9), (0, 5, 9)])).tolist() == [False, True]


def test_the_next_interval_in_a_row_is_not_inside() -> None:
    assert not inside_earlier(*columns([(0, 0, 5), (0, 5, 9), (0, 9, 9)])).any()
