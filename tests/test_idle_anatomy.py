"""Idle time of a device: where it lies, that every split sums, and the gaps that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.idle import LARGEST_GAPS, idle_anatomy
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, Place
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.steps import find_steps
from tests.builders import (
    Op,
    Span,
    annotation,
    call,
    copy_to_host,
    device_annotation,
    frame,
    kernel,
    operator,
    ops_of,
    trace_of,
)


def anatomy(ops: Sequence[Op], host: Sequence[Span], window: tuple[int, int] | None = None) -> IdleAnatomy:
    trace = trace_of(ops, host)
    table = ops_of(trace)
    low, high = window or (min(o.start for o in ops), max(o.end for o in ops))
    return idle_anatomy(trace, table, find_steps(trace, table), Window("device", low, high))


def places(ops: Sequence[Op], host: Sequence[Span]) -> dict[Place, int]:
    """Idle time by place, places without any left out."""
    return {place: ns for place, ns in anatomy(ops, host).by_place_ns.items() if ns}


FIRST, SECOND = annotation(0, 20, "ProfilerStep#1"), annotation(40, 60, "ProfilerStep#2")


def test_idle_between_kernels_of_one_step() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(25, 30, correlation=2)]
    assert places(ops, [FIRST, call(1, 2, correlation=1), call(3, 4, correlation=2)]) == {
        Place.WITHIN_STEP: 5
    }


def test_idle_before_a_step_splits_where_its_annotation_opens() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(55, 60, correlation=2)]
    host = [FIRST, SECOND, call(1, 2, correlation=1), call(50, 51, correlation=2)]
    assert places(ops, host) == {Place.BETWEEN_STEPS: 20, Place.STEP_START: 15}


def test_a_step_opened_while_the_device_was_busy_makes_the_whole_gap_its_start() -> None:
    ops = [kernel(10, 45, correlation=1), kernel(55, 60, correlation=2)]
    host = [FIRST, SECOND, call(1, 2, correlation=1), call(50, 51, correlation=2)]
    assert places(ops, host) == {Place.STEP_START: 10}


def test_idle_after_a_copy_to_the_host_lasts_until_the_next_step_opens() -> None:
    ops = [copy_to_host(10, 20, correlation=1), kernel(55, 60, correlation=2)]
    host = [FIRST, SECOND, call(1, 2, "cudaMemcpyAsync", correlation=1), call(50, 51, correlation=2)]
    assert places(ops, host) == {Place.AFTER_SAMPLING: 20, Place.STEP_START: 15}


def test_idle_after_a_sampling_kernel_or_inside_item_is_after_sampling() -> None:
    after = kernel(30, 40, correlation=2)
    host = [annotation(0, 20, "ProfilerStep#1"), call(1, 2, correlation=1), call(3, 4, correlation=2)]
    sampler = kernel(10, 20, "void sampling::TopKTopPSamplingFromProbKernel<1024>()", correlation=1)
    assert places([sampler, after], host) == {Place.AFTER_SAMPLING: 10}
    plain = kernel(10, 20, correlation=1)
    assert places([plain, after], [*host, operator(5, 25, "aten::item")]) == {Place.AFTER_SAMPLING: 10}
    assert places([plain, after], [*host, operator(5, 25, "aten::add")]) == {Place.WITHIN_STEP: 10}


def test_work_outside_any_step_leaves_idle_between_steps() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(25, 30, correlation=2)]
    host = [FIRST, call(1, 2, correlation=1), call(22, 23, correlation=2)]
    assert places(ops, host) == {Place.BETWEEN_STEPS: 5}


def test_steps_found_on_the_device_have_no_step_start() -> None:
    ops = [kernel(10, 20), kernel(35, 40)]
    host = [device_annotation(10, 21, "step[DECODE bs=1]"), device_annotation(34, 41, "step[DECODE bs=1]")]
    assert places(ops, host) == {Place.BETWEEN_STEPS: 15}


def test_without_steps_idle_is_unplaced_unless_it_follows_a_copy_to_the_host() -> None:
    ops = [kernel(0, 10), kernel(15, 20), copy_to_host(20, 25), kernel(40, 50)]
    assert places(ops, [call(0, 1, correlation=9)]) == {Place.UNPLACED: 5, Place.AFTER_SAMPLING: 15}


def test_the_longest_gaps_come_first_with_what_stood_around_them() -> None:
    ops = [
        kernel(0, 10, "first"),
        kernel(20, 30, "second", correlation=1),
        kernel(1030, 1040, "third", correlation=2),
    ]
    host = [
        call(12, 13, correlation=1),
        frame(500, 600, "plan.py(3): plan"),
        frame(100, 900, "loop.py(1): run"),
        call(510, 620, "cudaMalloc"),
        call(1000, 1001, correlation=2),
    ]
    longest, second = anatomy(ops, host).largest
    assert (longest.start_ns, longest.end_ns) == (30, 1030)
    assert (longest.after_op, longest.before_op) == ("second", "third")
    assert (longest.host_op, longest.host_call) == ("plan.py(3): plan", "cudaMalloc")
    assert second.end_ns - second.start_ns == 10


def test_no_more_gaps_are_shown_than_a_reader_looks_at() -> None:
    ops = [kernel(10 * i, 10 * i + 5) for i in range(LARGEST_GAPS + 5)]
    found = anatomy(ops, [])
    assert found.gaps == LARGEST_GAPS + 4
    assert found.median_gap_ns == 5.0
    assert len(found.largest) == LARGEST_GAPS


def test_a_device_that_never_idles_has_no_gaps() -> None:
    found = anatomy([kernel(0, 10), kernel(5, 20, stream=8)], [])
    assert (found.idle_ns, found.gaps, found.median_gap_ns, found.largest) == (0, 0, None, ())
    assert set(found.by_cause_ns) == set(Cause)
    assert set(found.by_place_ns) == set(Place)


def test_a_window_without_any_operation_is_idle_for_no_known_reason() -> None:
    trace = trace_of(host=[call(0, 1)])
    ops = ops_of(trace)
    found = idle_anatomy(trace, ops, find_steps(trace, ops), Window("recorded", 0, 50))
    assert found.by_cause_ns[Cause.UNKNOWN] == 50
    assert found.by_place_ns[Place.UNPLACED] == 50


Maker = Callable[[int, int, str], Span]
HOST_KINDS: st.SearchStrategy[tuple[Maker, str]] = st.sampled_from(
    [
        (call, "cudaLaunchKernel"),
        (call, "cudaStreamSynchronize"),
        (call, "cudaMemcpyAsync"),
        (annotation, "ProfilerStep#1"),
        (annotation, "## load ##"),
        (operator, "aten::item"),
        (operator, "aten::mm"),
        (frame, "run"),
    ]
)
stretch = st.tuples(st.integers(0, 60), st.integers(0, 20))


Stretch = tuple[int, int]


@st.composite
def operations(draw: st.DrawFn) -> list[Op]:
    made: list[Op] = []
    for at, length in draw(st.lists(stretch, min_size=1, max_size=12)):
        correlation = draw(st.integers(-1, 12))
        made.append(kernel(at, at + length, correlation=correlation))
        if draw(st.booleans()):
            made[-1] = copy_to_host(at, at + length, correlation=correlation)
    return made


@st.composite
def host_spans(draw: st.DrawFn) -> list[Span]:
    made: list[Span] = []
    for (at, length), (make, name) in draw(st.lists(st.tuples(stretch, HOST_KINDS), max_size=12)):
        span = make(at, at + length, name)
        made.append(replace(span, correlation=len(made) + 1) if span.category == "cuda_runtime" else span)
    return made


@given(operations(), host_spans(), st.tuples(st.integers(-5, 30), st.integers(0, 90)))
def test_both_splits_sum_to_the_idle_time_and_idle_and_busy_to_the_window(
    ops: list[Op], host: list[Span], window: Stretch
) -> None:
    low, high = window[0], window[0] + window[1]
    found = anatomy(ops, host, (low, high))
    busy = len({t for op in ops for t in range(op.start, op.end) if low <= t < high})
    assert found.idle_ns + busy == high - low
    assert sum(found.by_cause_ns.values()) == found.idle_ns
    assert sum(found.by_place_ns.values()) == found.idle_ns
    assert min(*found.by_cause_ns.values(), *found.by_place_ns.values()) >= 0
