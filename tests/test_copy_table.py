"""Copies by direction, and the part of them that no kernel hides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.copies import copy_table
from layers.layer1_gpu_busy.copy_names import UNKNOWN_DIRECTION, direction_of
from parsers.trace_model import MEMCPY
from tests.builders import Op, copy_to_host, kernel, ops_of, trace_of

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("Memcpy DtoH (Device -> Pageable)", "DtoH pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH pinned"),
        ("Memcpy HtoD (Pageable -> Device)", "HtoD pageable"),
        ("Memcpy HtoD (Host -> Device)", "HtoD"),
        ("Memcpy DtoD (Device -> Device)", "DtoD"),
        ("Memcpy PtoP (Device -> Device)", "PtoP"),
        ("CopyHostToDevice", "HtoD"),
        ("CopyDeviceToHost", "DtoH"),
        ("Memcpy", UNKNOWN_DIRECTION),
    ],
)
def test_the_name_of_a_copy_says_its_direction(name: str, direction: str) -> None:
    assert direction_of(name) == direction


@given(SPANS, SPANS)
def test_time_and_exposure_agree_with_a_count_of_nanoseconds(
    copies: list[tuple[int, int]], kernels: list[tuple[int, int]]
) -> None:
    trace = trace_of(
        [copy_to_host(start, start + length) for start, length in copies]
        + [kernel(start, start + length) for start, length in kernels]
    )
    copying = {t for start, length in copies for t in range(start, start + length)}
    computing = {t for start, length in kernels for t in range(start, start + length)}
    rows = copy_table(trace, ops_of(trace))
    assert sum(r.total_ns for r in rows) == len(copying)
    assert sum(r.exposed_ns for r in rows) == len(copying - computing)
    assert sum(r.n for r in rows) == len(copies)


def test_names_of_one_direction_share_a_row() -> None:
    trace = trace_of(
        [
            Op(0, 4, "CopyHostToDevice", MEMCPY),
            Op(6, 8, "Memcpy HtoD (Host -> Device)", MEMCPY),
            copy_to_host(9, 10),
        ]
    )
    assert [(r.direction, r.n, r.total_ns) for r in copy_table(trace, ops_of(trace))] == [
        ("HtoD", 2, 6),
        ("DtoH pageable", 1, 1),
    ]


def test_bytes_are_summed_where_recorded_and_absent_where_none_is() -> None:
    trace = trace_of(
        [copy_to_host(0, 1, nbytes=8), copy_to_host(1, 2, nbytes=4), Op(2, 3, "CopyHostToDevice", MEMCPY)]
    )
    assert {r.direction: r.nbytes for r in copy_table(trace, ops_of(trace))} == {
        "DtoH pageable": 12,
        "HtoD": None,
    }


def test_a_device_that_copied_nothing_has_no_rows() -> None:
    trace = trace_of([kernel(0, 1)])
    assert copy_table(trace, ops_of(trace)) == ()
