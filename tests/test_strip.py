"""The stretch of a trace that is drawn: which one, its streams, and its gaps with their causes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.busy import device_window
from layers.layer1_gpu_busy.model import Cause, Step, Steps, Strip, Window
from layers.layer1_gpu_busy.strip import MAX_LANES, RESOLUTION, draw_strip
from tests.builders import Op, Span, annotation, call, kernel, ops_of, trace_of

NO_STEPS = Steps("", (), "none")


def drawn(ops: list[Op], steps: Steps = NO_STEPS, host: list[Span] | None = None) -> Strip | None:
    trace = trace_of(ops, host or [])
    return draw_strip(trace, ops_of(trace), steps, device_window(ops_of(trace)))


def step(name: str, start: int, end: int) -> Step:
    return Step(name, "decode", start, end, start, end, 1, None, None)


def of_steps(*lengths: int) -> Strip | None:
    steps, ops, at = [], [], 0
    for number, length in enumerate(lengths):
        steps.append(step(str(number), at, at + length))
        ops.append(kernel(at, at + length))
        at += length
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
    strip = of_steps(*lengths)
    assert strip is not None and strip.what == name


def test_steps_without_device_time_are_not_drawn() -> None:
    steps = Steps("made up", (step("empty", 5, 5), step("full", 10, 30)))
    strip = drawn([kernel(0, 100)], steps)
    assert strip is not None and (strip.what, strip.start_ns, strip.end_ns) == ("step full", 10, 30)


def test_without_steps_it_is_the_middle_tenth_of_the_device_window() -> None:
    strip = drawn([kernel(1_000, 2_000)])
    assert strip is not None
    assert (strip.what, strip.start_ns, strip.end_ns) == (
        "the middle tenth of the device window",
        1_450,
        1_550,
    )


def test_a_window_too_short_for_a_tenth_is_not_drawn() -> None:
    assert drawn([kernel(5, 5)]) is None and drawn([kernel(5, 14)]) is None


def test_a_step_that_reaches_out_of_the_window_is_cut() -> None:
    ops = [kernel(10, 20)]
    trace = trace_of(ops)
    strip = draw_strip(trace, ops_of(trace), Steps("", (step("wide", 0, 90),)), Window("device", 10, 20))
    assert strip is not None and (strip.start_ns, strip.end_ns) == (10, 20)


def test_each_stream_has_a_lane_and_work_outside_has_none() -> None:
    steps = Steps("", (step("s", 1_000, 2_000),))
    ops = [kernel(900, 1_100, stream=7), kernel(1_500, 1_700, stream=20), kernel(3_000, 3_100, stream=30)]
    strip = drawn(ops, steps)
    assert strip is not None
    assert strip.lanes == ((7, ((1_000, 1_100),)), (20, ((1_500, 1_700),)))


def test_neighbours_closer_than_a_pixel_are_drawn_as_one() -> None:
    steps, grain = Steps("", (step("s", 0, 100 * RESOLUTION),)), 100
    ops = [kernel(0, 500), kernel(500 + grain, 900), kernel(900 + grain + 1, 2_000), kernel(90_000, 100_000)]
    strip = drawn(ops, steps)
    assert strip is not None
    assert strip.lanes == ((7, ((0, 900), (1_001, 2_000), (90_000, 100_000))),)


def test_the_streams_with_most_operations_are_drawn_when_there_are_too_many() -> None:
    ops = [kernel(10 * n, 10 * n + 5, stream=s) for s in range(MAX_LANES + 2) for n in range(s + 1)]
    strip = drawn(ops, Steps("", (step("s", 0, 200),)))
    assert strip is not None
    assert [stream for stream, _ in strip.lanes] == list(range(2, MAX_LANES + 2))


def test_gaps_carry_the_cause_that_took_most_of_them() -> None:
    host = [
        annotation(0, 1_000_000, "scheduling"),
        call(950_000, 960_000, correlation=2),
        call(0, 1, correlation=1),
    ]
    ops = [kernel(100, 200, correlation=1), kernel(960_000, 990_000, correlation=2)]
    strip = drawn(ops, Steps("", (step("s", 100, 990_000),)), host)
    assert strip is not None
    [gap] = strip.gaps
    assert (gap.start_ns, gap.end_ns, gap.cause) == (200, 960_000, Cause.HOST_WORK)


spans = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(1, 400), st.integers(0, 2)), min_size=1, max_size=20
)


@given(spans)
def test_lanes_and_gaps_lie_inside_in_order_and_gaps_are_free_of_work(
    drawn_spans: list[tuple[int, int, int]],
) -> None:
    ops = [kernel(start, start + length, stream=stream) for start, length, stream in drawn_spans]
    trace = trace_of(ops)
    window = device_window(ops_of(trace))
    steps = Steps("", (step("s", window.start_ns, window.end_ns),))
    strip = draw_strip(trace, ops_of(trace), steps, window)
    assert strip is not None
    for pairs in [*(busy for _, busy in strip.lanes), tuple((g.start_ns, g.end_ns) for g in strip.gaps)]:
        edges = [edge for pair in pairs for edge in pair]
        assert edges == sorted(edges)
        assert all(strip.start_ns <= edge <= strip.end_ns for edge in edges)
    busy = {tick for op in ops for tick in range(op.start, op.end)}
    assert not any(busy & set(range(gap.start_ns, gap.end_ns)) for gap in strip.gaps)
