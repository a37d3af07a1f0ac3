"""Named ranges and the device work launched inside them."""

from __future__ import annotations

from dataclasses import replace

from layers.layer1_gpu_busy.model import PhaseRow
from layers.layer1_gpu_busy.phases import TOP_PHASES, phase_table
from tests.builders import Op, Span, annotation, call, kernel, ops_of, trace_of


def phases(ops: list[Op], host: list[Span]) -> list[PhaseRow]:
    trace = trace_of(ops, host)
    return list(phase_table(trace, ops_of(trace)))


def test_work_counts_where_it_was_launched_however_late_it_ran() -> None:
    ops = [
        kernel(1000, 1010, correlation=1),
        kernel(1005, 1020, correlation=2, stream=8),
        kernel(50, 60, correlation=3),
    ]
    host = [
        annotation(0, 10, "forward"),
        call(1, 2, correlation=1),
        call(3, 4, correlation=2),
        call(12, 13, correlation=3),
    ]
    assert phases(ops, host) == [PhaseRow("forward", 1, 10.0, 10, 20, 2)]


def test_launches_of_another_thread_are_told_apart_and_count_as_none_of_the_range() -> None:
    ops = [kernel(100, 110, correlation=1), kernel(105, 120, correlation=2), kernel(300, 310, correlation=3)]
    host = [
        annotation(0, 10, "backward"),
        *(call(t, t + 1, correlation=t, thread="autograd") for t in (1, 2)),
        call(20, 21, correlation=3, thread="autograd"),
    ]
    assert phases(ops, host) == [PhaseRow("backward", 1, 10.0, 10, 0, 0, 20, 2)]


def test_work_launched_in_the_same_range_of_its_own_thread_is_no_work_of_others() -> None:
    ops = [kernel(100, 110, correlation=1), kernel(200, 210, correlation=2)]
    host = [
        annotation(0, 10, "forward"),
        annotation(0, 10, "forward", thread="other"),
        call(1, 2, correlation=1),
        call(3, 4, correlation=2, thread="other"),
    ]
    assert phases(ops, host) == [PhaseRow("forward", 2, 10.0, 20, 20, 2, 0, 0)]


def test_threads_of_another_process_launch_nothing_for_a_range() -> None:
    ops = [kernel(100, 110, correlation=1)]
    host = [annotation(0, 10, "forward"), call(1, 2, correlation=1, thread="other")]
    trace = trace_of(ops, host)
    foreign = [replace(track, pid=track.tid) for track in trace.tracks]
    assert phase_table(replace(trace, tracks=foreign), ops_of(trace))[0].meanwhile_ops == 0


def test_nested_ranges_keep_their_names_and_both_count_the_work() -> None:
    ops = [kernel(100, 110, correlation=1)]
    host = [annotation(0, 10, "forward"), annotation(2, 6, "attention"), call(3, 4, correlation=1)]
    assert [(p.name, p.device_ops, p.device_busy_ns) for p in phases(ops, host)] == [
        ("forward", 1, 10),
        ("attention", 1, 10),
    ]


def test_a_running_number_at_the_end_makes_no_new_phase() -> None:
    host = [
        annotation(0, 10, "load#1"),
        annotation(20, 50, "load#2"),
        annotation(60, 65, "Optimizer.step#SGD.step"),
    ]
    assert [(p.name, p.n, p.host_p50_ns, p.host_total_ns) for p in phases([], host)] == [
        ("load", 2, 20.0, 40),
        ("Optimizer.step#SGD.step", 1, 5.0, 5),
    ]


def test_step_markers_are_no_phases_and_tags_are() -> None:
    host = [
        annotation(0, 90, "ProfilerStep#1"),
        annotation(0, 90, "step[DECODE bs=4]"),
        annotation(5, 15, "schedule[batch=4]"),
    ]
    assert [p.name for p in phases([], host)] == ["schedule[batch=4]"]


def test_the_phases_with_the_most_host_time_are_shown() -> None:
    host = [annotation(100 * i, 100 * i + i + 1, f"phase {chr(97 + i)}") for i in range(TOP_PHASES + 3)]
    shown = phases([], host)
    assert len(shown) == TOP_PHASES
    assert [p.host_total_ns for p in shown] == sorted((p.host_total_ns for p in shown), reverse=True)
    assert shown[0].host_total_ns == TOP_PHASES + 3


def test_nothing_annotated_means_no_phases() -> None:
    assert phases([kernel(0, 1)], [call(0, 1)]) == []
