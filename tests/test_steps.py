"""Steps from annotations: which marker is believed, and which operations belong to which step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.steps import NO_STEP, find_steps, step_of_operations
from tests.builders import (
    Op,
    Span,
    annotation,
    call,
    device_annotation,
    kernel,
    ops_of,
    trace_of,
)


def launches(*starts: int, runs_at: int, thread: str = "main", first: int = 1) -> tuple[list[Op], list[Span]]:
    """Calls at the given moments; their kernels run one after another from `runs_at` on, 10 ns each."""
    ids = range(first, first + len(starts))
    calls = [call(at, at + 1, correlation=i, thread=thread) for at, i in zip(starts, ids, strict=True)]
    kernels = [kernel(runs_at + 10 * n, runs_at + 10 * n + 10, correlation=i) for n, i in enumerate(ids)]
    return kernels, calls


def test_operations_belong_to_the_step_that_was_open_at_their_launch_however_late_they_run() -> None:
    kernels, calls = launches(5, 15, 25, runs_at=1000)
    trace = trace_of(
        kernels, [*calls, annotation(0, 10, "ProfilerStep#1"), annotation(10, 30, "ProfilerStep#2")]
    )
    ops = ops_of(trace)
    steps = find_steps(trace, ops)
    assert steps.method == "ProfilerStep annotations on the host"
    assert steps.on_host
    assert [(s.start_ns, s.end_ns, s.operations) for s in steps.steps] == [(1000, 1010, 1), (1010, 1030, 2)]
    assert [(s.host_start_ns, s.host_end_ns) for s in steps.steps] == [(0, 10), (10, 30)]
    assert step_of_operations(trace, ops, steps).tolist() == [0, 1, 1]


def test_launches_of_another_thread_count_for_the_open_step() -> None:
    kernels, calls = launches(5, runs_at=100, thread="autograd")
    trace = trace_of(kernels, [*calls, annotation(0, 10, "ProfilerStep#1")])
    assert [s.operations for s in find_steps(trace, ops_of(trace)).steps] == [1]


def test_engine_annotations_are_trusted_before_profiler_steps() -> None:
    kernels, calls = launches(5, runs_at=100)
    trace = trace_of(
        kernels, [*calls, annotation(0, 10, "ProfilerStep#1"), annotation(1, 9, "step[DECODE bs=4]")]
    )
    [step] = find_steps(trace, ops_of(trace)).steps
    assert (step.kind, step.batch_size, step.host_start_ns) == ("decode", 4, 1)


def test_a_marker_without_any_operation_is_passed_over() -> None:
    kernels, calls = launches(5, runs_at=100)
    trace = trace_of(
        kernels, [*calls, annotation(0, 10, "ProfilerStep#1"), annotation(20, 30, "step[DECODE bs=4]")]
    )
    assert find_steps(trace, ops_of(trace)).method.startswith("ProfilerStep")


def test_steps_without_operations_stay_in_the_list() -> None:
    kernels, calls = launches(5, runs_at=100)
    trace = trace_of(
        kernels, [*calls, annotation(0, 10, "ProfilerStep#1"), annotation(10, 20, "ProfilerStep#2")]
    )
    _, empty = find_steps(trace, ops_of(trace)).steps
    assert (empty.operations, empty.start_ns, empty.end_ns) == (0, 10, 10)


def test_a_marker_nested_in_one_of_its_family_is_no_step_of_its_own() -> None:
    kernels, calls = launches(5, runs_at=100)
    nested = [annotation(0, 10, "step[EXTEND bs=1 toks=9]"), annotation(2, 8, "step[EXTEND bs=1 toks=9]")]
    trace = trace_of(kernels, [*calls, *nested])
    assert [s.host_start_ns for s in find_steps(trace, ops_of(trace)).steps] == [0]


def test_steps_that_overlap_by_rounding_are_both_kept() -> None:
    kernels, calls = launches(5, 15, runs_at=100)
    marks = [annotation(0, 11, "ProfilerStep#1"), annotation(10, 20, "ProfilerStep#2")]
    trace = trace_of(kernels, [*calls, *marks])
    assert [s.operations for s in find_steps(trace, ops_of(trace)).steps] == [1, 1]


def test_of_several_tags_the_one_that_launches_most_is_the_step() -> None:
    kernels, calls = launches(2, 12, 13, 22, runs_at=100)
    marks = [annotation(0, 5, "schedule[batch=3]"), annotation(10, 15, "forward[batch=3]")]
    more = [annotation(20, 25, "schedule[batch=3]"), annotation(30, 35, "forward[batch=3]")]
    tail, tail_calls = launches(31, 32, runs_at=200, first=5)
    trace = trace_of([*kernels, *tail], [*calls, *tail_calls, *marks, *more])
    steps = find_steps(trace, ops_of(trace)).steps
    assert {s.kind for s in steps} == {"forward"}
    assert [s.batch_size for s in steps] == [3, 3]


def test_annotations_on_the_device_serve_where_the_host_has_none() -> None:
    trace = trace_of(
        [kernel(10, 20), kernel(30, 40), kernel(60, 70)],
        [device_annotation(10, 45, "step[DECODE bs=8]"), call(0, 1, correlation=9)],
    )
    ops = ops_of(trace)
    steps = find_steps(trace, ops)
    assert steps.method == "SGLang annotations on the device"
    assert not steps.on_host
    assert step_of_operations(trace, ops, steps).tolist() == [0, 0, NO_STEP]


def test_an_operation_without_a_launch_goes_by_its_own_start() -> None:
    kernels, calls = launches(5, 6, 15, 16, runs_at=1000)
    orphan_in_second = kernel(1025, 1026, correlation=99, stream=8)
    trace = trace_of(
        [*kernels, orphan_in_second],
        [*calls, annotation(0, 10, "ProfilerStep#1"), annotation(10, 20, "ProfilerStep#2")],
    )
    assert [s.operations for s in find_steps(trace, ops_of(trace)).steps] == [2, 3]


def test_what_was_launched_before_the_recording_is_in_no_step() -> None:
    kernels, calls = launches(5, 6, runs_at=1000, first=50)
    left_over = kernel(1005, 1006, correlation=7, stream=8)
    trace = trace_of([*kernels, left_over], [*calls, annotation(0, 10, "ProfilerStep#1")])
    assert [s.operations for s in find_steps(trace, ops_of(trace)).steps] == [2]


def test_annotations_that_the_first_kineto_files_as_operators_are_found() -> None:
    kernels, calls = launches(5, runs_at=100)
    legacy = [Span(0, 10, "ProfilerStep#1", "Operator"), Span(2, 8, "aten::mm", "Operator")]
    trace = trace_of(kernels, [*calls, *legacy])
    assert [s.name for s in find_steps(trace, ops_of(trace)).steps] == ["ProfilerStep#1"]


def test_none_found_says_why() -> None:
    kernels, calls = launches(5, runs_at=100)
    unannotated = trace_of(kernels, calls)
    assert "no annotation of a known form" in find_steps(unannotated, ops_of(unannotated)).why_none
    without_host = trace_of(kernels)
    assert "no host spans" in find_steps(without_host, ops_of(without_host)).why_none
    unread = trace_of(kernels, busy_only=True)
    assert find_steps(unread, ops_of(unread)).why_none == "host spans were not read"


def test_an_empty_device_has_no_steps() -> None:
    trace = trace_of(host=[annotation(0, 10, "ProfilerStep#1")])
    assert find_steps(trace, ops_of(trace)).steps == ()


step_lengths = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(step_lengths, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), min_size=1, max_size=12))
def test_assignment_agrees_with_a_look_at_every_window(
    lengths: list[int], calls: list[tuple[int, int]]
) -> None:
    edges = [sum(lengths[:i]) + i for i in range(len(lengths) + 1)]
    windows = [(edge, edge + length) for edge, length in zip(edges, lengths, strict=False)]
    host = [annotation(a, b, f"ProfilerStep#{i}") for i, (a, b) in enumerate(windows)]
    host += [call(at, at, correlation=i) for i, (at, _) in enumerate(calls, 1)]
    ops = [kernel(at + delay, at + delay + 3, correlation=i) for i, (at, delay) in enumerate(calls, 1)]
    trace = trace_of(ops, host)
    table = ops_of(trace)
    steps = find_steps(trace, table)
    launch_at = {i: at for i, (at, _) in enumerate(calls, 1)}
    expected = [
        next((n for n, (a, b) in enumerate(windows) if a <= launch_at[c] < b), NO_STEP)
        for c in table.correlation.tolist()
    ]
    if steps.steps:
        assert step_of_operations(trace, table, steps).tolist() == expected
    else:
        assert set(expected) == {NO_STEP}
