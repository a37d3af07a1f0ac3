"""Busy ratios against a twin that counts single nanoseconds; windows, streams, what each ratio counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.busy import devices_of, measure_busy, steps_window
from layers.layer1_gpu_busy.model import DeviceBusy, StreamBusy, Window, WindowRatio
from parsers.trace_model import GRAPH, KERNEL, MEMCPY, MEMSET, DeviceTrace
from tests.builders import Op, Span, annotation, copy_to_host, kernel, ops_of, trace_of

ops = st.lists(
    st.builds(
        lambda start, dur, kind, stream, device: Op(
            start, start + dur, kind=kind, stream=stream, device=device
        ),
        start=st.integers(-50, 100),
        dur=st.integers(0, 40),
        kind=st.sampled_from([KERNEL, MEMCPY, MEMSET, GRAPH]),
        stream=st.integers(-1, 3),
        device=st.integers(0, 1),
    ),
    min_size=1,
    max_size=12,
)
steps = st.lists(st.tuples(st.integers(-60, 120), st.integers(0, 60)), max_size=3)


def ticks(among: list[Op]) -> set[int]:
    return {tick for op in among for tick in range(op.start, op.end)}


def busy(trace: DeviceTrace, device: int = 0) -> DeviceBusy:
    return measure_busy(trace, ops_of(trace, device))


@given(ops, steps)
def test_every_ratio_is_that_of_the_twin_over_each_window(
    drawn: list[Op], marks: list[tuple[int, int]]
) -> None:
    host = [annotation(start, start + dur, f"ProfilerStep#{n}") for n, (start, dur) in enumerate(marks)]
    trace = trace_of(drawn, host)
    for device in devices_of(trace):
        mine = [op for op in drawn if op.device == device]
        kernels = [op for op in mine if op.kind in (KERNEL, GRAPH)]
        found = busy(trace, device)
        assert (found.events, found.kernels) == (len(mine), len(kernels))
        assert found.sum_ns == sum(op.end - op.start for op in mine)
        own = (min(op.start for op in mine), max(op.end for op in mine))
        assert (found.device_window.window.start_ns, found.device_window.window.end_ns) == own
        for window in (found.device_window, found.steps_window, found.recorded_window):
            assert window is None or over(window) == twin(window.window, mine, kernels)


def over(ratios: WindowRatio) -> tuple[float | None, float | None]:
    return ratios.device_op_ratio, ratios.kernel_ratio


def twin(window: Window, mine: list[Op], kernels: list[Op]) -> tuple[float | None, float | None]:
    inside = set(range(window.start_ns, window.end_ns))
    if not inside:
        return None, None
    return len(ticks(mine) & inside) / len(inside), len(ticks(kernels) & inside) / len(inside)


@given(ops)
def test_kernel_time_is_at_most_device_op_time_which_is_at_most_the_window(drawn: list[Op]) -> None:
    trace = trace_of(drawn)
    for device in devices_of(trace):
        found = busy(trace, device)
        for window in (found.device_window, found.recorded_window):
            assert window is not None
            assert 0 <= window.kernel_ns <= window.device_op_ns <= window.window.length_ns
        assert found.device_window.device_op_ns <= found.sum_ns


@given(ops)
def test_streams_have_their_own_unions_busiest_first(drawn: list[Op]) -> None:
    trace = trace_of(drawn)
    mine = [op for op in drawn if op.device == drawn[0].device]
    found = busy(trace, drawn[0].device).streams
    for row in found:
        on_it = [op for op in mine if op.stream == row.stream]
        sum_ns = sum(op.end - op.start for op in on_it)
        assert row == StreamBusy(row.stream, len(on_it), len(ticks(on_it)), sum_ns)
    assert {row.stream for row in found} == {op.stream for op in mine}
    assert [row.busy_ns for row in found] == sorted((row.busy_ns for row in found), reverse=True)


def test_overlapping_streams_are_counted_once() -> None:
    found = busy(trace_of([kernel(0, 60, stream=7), kernel(40, 100, stream=20), kernel(0, 100, stream=7)]))
    assert (found.device_window.device_op_ratio, found.sum_ns) == (1.0, 220)


def test_a_replay_recorded_as_one_interval_is_kernel_time() -> None:
    assert over(busy(trace_of([Op(0, 60, kind=GRAPH), copy_to_host(90, 100)])).device_window) == (0.7, 0.6)


def test_copies_and_sets_are_device_op_time_and_no_kernel_time() -> None:
    found = busy(trace_of([kernel(0, 30), copy_to_host(30, 50), Op(60, 80, kind=MEMSET), kernel(90, 100)]))
    assert over(found.device_window) == (0.8, 0.4)


def test_copies_alone_are_a_kernel_time_of_0_which_was_measured() -> None:
    assert over(busy(trace_of([copy_to_host(0, 30), copy_to_host(90, 100)])).device_window) == (0.4, 0.0)


def test_one_operation_without_duration_leaves_the_ratio_unmeasured() -> None:
    found = busy(trace_of([kernel(5, 5)]))
    assert over(found.device_window) == (None, None)
    assert (found.events, found.longest_op_ns) == (1, 0)


def test_the_steps_window_runs_from_the_first_start_to_the_last_end_on_any_thread() -> None:
    for last in (annotation(100, 200, "ProfilerStep#4", thread="b"), annotation(5, 9, "ProfilerStep#4")):
        host = [last, annotation(0, 90, "ProfilerStep#3")]
        found = busy(trace_of([kernel(50, 80)], host))
        assert found.steps_window == WindowRatio(Window("steps", 0, max(90, last.end)), 30, 30)


@pytest.mark.parametrize("name", ["forward", "step[DECODE bs=4]", "my ProfilerStep#3", "## ProfilerStep ##"])
def test_other_annotations_are_no_profiled_steps(name: str) -> None:
    assert steps_window(trace_of([kernel(0, 1)], [annotation(0, 10, name)])) is None


def test_an_operator_named_like_a_step_is_none() -> None:
    assert steps_window(trace_of([kernel(0, 1)], [Span(0, 10, "ProfilerStep#1", "cpu_op")])) is None


def test_the_first_kineto_filed_its_steps_under_operators() -> None:
    found = steps_window(trace_of([kernel(0, 1)], [Span(0, 10, "ProfilerStep#1", "Operator")]))
    assert found == Window("steps", 0, 10)


def test_work_outside_a_window_is_clipped_away() -> None:
    trace = replace(trace_of([kernel(0, 50), kernel(80, 100)]), recorded_ns=(40, 90))
    assert over_recorded(trace) == (20 / 50, 20 / 50)


def over_recorded(trace: DeviceTrace) -> tuple[float | None, float | None]:
    window = busy(trace).recorded_window
    assert window is not None
    return over(window)


def test_a_file_that_records_no_window_has_no_ratio_over_it() -> None:
    assert busy(replace(trace_of([kernel(0, 50)]), recorded_ns=None)).recorded_window is None


def test_devices_come_by_number_and_apart() -> None:
    trace = trace_of([kernel(0, 10, device=3), kernel(0, 10, device=0), kernel(90, 100, device=0)])
    assert devices_of(trace) == [0, 3]
    assert [over(busy(trace, device).device_window)[0] for device in (0, 3)] == [0.2, 1.0]


def test_the_longest_operation_is_named() -> None:
    found = busy(trace_of([kernel(0, 10, "a"), kernel(20, 50, "b"), kernel(60, 70, "c")]))
    assert (found.longest_op_name, found.longest_op_ns) == ("b", 30)


def test_sums_of_durations_may_pass_64_bits() -> None:
    long_ns = (1 << 62) + 12_345
    pairs = [(start, stream) for start in range(7) for stream in (7, 8)]
    trace = trace_of([kernel(start, start + long_ns, stream=stream) for start, stream in pairs])
    found = measure_busy(trace, trace.device_ops)
    assert found.sum_ns == 14 * long_ns
    assert [row.sum_ns for row in found.streams] == [7 * long_ns] * 2
