"""Distinct values and rows of columns, against Python's own sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsers.nsys_distinct import distinct, distinct_rows

VALUES = st.integers(-(1 << 62), 1 << 62)
ROWS = st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([0, 7, 1 << 60]), st.integers(0, 1)))


@given(st.lists(VALUES))
def test_values_are_found_and_told_apart(values: list[int]) -> None:
    found, which = distinct(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))
    assert found[which].tolist() == values


@given(ROWS)
def test_rows_are_found_and_told_apart(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    found, which = distinct_rows(*columns)
    assert found == sorted(set(rows))
    assert [found[i] for i in which] == rows
