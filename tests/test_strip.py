"""The stretch of a trace that is drawn: which one, its streams, and all of its idle time with its causes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.busy import device_window
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import Step, Steps, Strip, Window, column_edges
from layers.layer1_gpu_busy.strip import COLUMNS, MAX_LANES, draw_strip
from tests.builders import Op, Span, annotation, call, copy_to_host, kernel, ops_of, trace_of

NO_STEPS = Steps("", (), "none")
LONG = 100 * COLUMNS
"""A stretch of which a column is 100 long."""


def drawn(ops: list[Op], steps: Steps = NO_STEPS, host: list[Span] | None = None) -> Strip:
    trace = trace_of(ops, host or [])
    strip = draw_strip(trace, ops_of(trace), steps, device_window(ops_of(trace)))
    assert strip is not None
    return strip


def step(name: str, start: int, end: int) -> Step:
    return Step(name, "decode", start, end, start, end, 1, None, None)


def of_steps(*lengths: int, pause: int = 0) -> Strip:
    steps, ops, at = [], [], 0
    for number, length in enumerate(lengths):
        steps.append(step(str(number), at, at + length))
        ops.append(kernel(at, at + length))
        at += length + pause
    return drawn(ops, Steps("made up", tuple(steps)))


@pytest.mark.parametrize(
    ("lengths", "name"),
    [
        ((10,), "step 0"),
        ((10, 20), "step 0"),
        ((900, 10, 900), "step 1"),
        ((900, 30, 10, 20, 5), "step 3"),
        ((900, 40, 10, 20, 30, 5), "step 3"),
    ],
)
def test_the_step_of_median_length_among_the_inner_ones_is_drawn(lengths: tuple[int, ...], name: str) -> None:
    assert of_steps(*lengths).what == name


def test_a_step_is_drawn_until_the_next_begins_and_the_last_until_it_ends() -> None:
    strip = of_steps(900, 10, 900, pause=7)
    assert (strip.start_ns, strip.end_ns) == (907, 924)
    alone = of_steps(10, pause=7)
    assert (alone.start_ns, alone.end_ns) == (0, 10)


def test_a_step_that_still_runs_when_the_next_begins_is_drawn_to_its_own_end() -> None:
    steps = Steps("", tuple(step(str(n), 100 * n, 100 * n + 150) for n in range(3)))
    strip = drawn([kernel(0, 350)], steps)
    assert (strip.what, strip.start_ns, strip.end_ns) == ("step 1", 100, 250)


def test_steps_without_device_time_are_not_drawn() -> None:
    steps = Steps("made up", (step("empty", 5, 5), step("full", 10, 30)))
    strip = drawn([kernel(0, 100)], steps)
    assert (strip.what, strip.start_ns, strip.end_ns) == ("step full", 10, 30)


def test_without_steps_it_is_the_device_window() -> None:
    strip = drawn([kernel(1_000, 1_100), kernel(1_900, 2_000)])
    assert (strip.what, strip.start_ns, strip.end_ns) == ("the device window", 1_000, 2_000)


def test_a_window_without_length_is_not_drawn() -> None:
    trace = trace_of([kernel(5, 5)])
    assert draw_strip(trace, ops_of(trace), NO_STEPS, device_window(ops_of(trace))) is None


def test_a_step_that_reaches_out_of_the_window_is_cut() -> None:
    trace = trace_of([kernel(10, 20)])
    strip = draw_strip(trace, ops_of(trace), Steps("", (step("wide", 0, 90),)), Window("device", 10, 20))
    assert strip is not None and (strip.start_ns, strip.end_ns) == (10, 20)


def test_each_stream_has_a_lane_and_work_outside_has_none() -> None:
    steps = Steps("", (step("s", 1_000, 2_000),))
    ops = [kernel(900, 1_100, stream=7), kernel(1_500, 1_700, stream=20), kernel(3_000, 3_100, stream=30)]
    strip = drawn(ops, steps)
    assert [(lane.stream, sum(lane.busy_ns)) for lane in strip.lanes] == [(7, 100), (20, 200)]
    assert (strip.operations, strip.streams) == (2, 2)


def test_a_lane_names_what_takes_the_stream_s_time_most_first() -> None:
    ops = [
        *(kernel(0, 300, "gemm", stream=1), kernel(300, 302, "ncclDevKernel_AllReduce", stream=1)),
        *(kernel(0, 600, "ncclDevKernel_AllReduce", stream=2), kernel(600, 1_000, "gemm", stream=2)),
        copy_to_host(0, 50),
    ]
    kinds = {lane.stream: lane.kinds for lane in drawn(ops).lanes}
    assert kinds == {1: ("computation",), 2: ("communication", "computation"), 7: ("copies",)}


def test_the_streams_with_most_operations_are_drawn_when_there_are_too_many() -> None:
    ops = [kernel(10 * n, 10 * n + 5, stream=s) for s in range(MAX_LANES + 2) for n in range(s + 1)]
    strip = drawn(ops, Steps("", (step("s", 0, 200),)))
    assert [lane.stream for lane in strip.lanes] == list(range(2, MAX_LANES + 2))
    assert strip.streams == MAX_LANES + 2


def test_gaps_narrower_than_a_column_are_counted_and_none_of_their_time_is_lost() -> None:
    ops = [kernel(start, start + 60) for start in range(0, LONG // 2, 100)]
    ops += [kernel(LONG // 2 + 5_000, LONG)]
    strip = drawn(ops)
    assert (strip.gaps, strip.narrow_gaps, strip.narrow_gaps_ns) == (200, 199, 199 * 40)
    assert strip.idle_ns[Cause.UNKNOWN] == 199 * 40 + 5_040
    assert strip.idle_columns_ns[Cause.UNKNOWN][:3] == (40, 40, 40)
    assert strip.idle_columns_ns[Cause.UNKNOWN][COLUMNS // 2] == 100


def test_a_gap_is_divided_between_its_causes() -> None:
    host = [
        annotation(10, 660_000, "scheduling"),
        call(0, 1, correlation=1),
        call(660_000, 960_000, correlation=2),
    ]
    ops = [kernel(100, 60_000, correlation=1), kernel(960_000, 990_000, correlation=2)]
    strip = drawn(ops, host=host)
    assert strip.idle_ns[Cause.HOST_WORK] == 600_000 and strip.idle_ns[Cause.LAUNCH_BOUND] == 300_000
    work, launch = (strip.idle_columns_ns[c] for c in (Cause.HOST_WORK, Cause.LAUNCH_BOUND))
    column_ns = 989_900 / COLUMNS
    assert work[COLUMNS // 2] == pytest.approx(column_ns * 2 / 3, abs=1)
    assert launch[COLUMNS // 2] == pytest.approx(column_ns / 3, abs=1)


spans = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(1, 400), st.integers(0, 2)), min_size=1, max_size=20
)


@given(spans)
def test_columns_hold_what_counting_tick_by_tick_finds(drawn_spans: list[tuple[int, int, int]]) -> None:
    ops = [kernel(start, start + length, stream=stream) for start, length, stream in drawn_spans]
    strip = drawn(ops)
    edges = column_edges(strip.start_ns, strip.end_ns, COLUMNS)
    ticks = [set(range(low, high)) for low, high in pairwise(edges)]
    for lane in strip.lanes:
        busy = {tick for op in ops if op.stream == lane.stream for tick in range(op.start, op.end)}
        assert lane.busy_ns == tuple(len(column & busy) for column in ticks)
    busy = {tick for op in ops for tick in range(op.start, op.end)}
    idle = tuple(len(column - busy) for column in ticks)
    assert strip.idle_columns_ns.get(Cause.UNKNOWN, (0,) * COLUMNS) == idle
    assert sum(strip.idle_ns.values()) == sum(idle)
