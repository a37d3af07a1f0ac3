"""Launch calls against what ran: counts, delays, and the queue that each launch found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.launches import launch_statistics, queue_depth
from layers.layer1_gpu_busy.model import LaunchStats
from layers.layer1_gpu_busy.runtime_calls import launched_by
from tests.builders import Op, Span, call, copy_to_host, kernel, one_clock, ops_of, trace_of


def statistics(ops: list[Op], host: list[Span], device: int = 0) -> LaunchStats:
    trace = trace_of(ops, host)
    return launch_statistics(trace, ops_of(trace, device))


def test_kernels_copies_and_sets_are_launches_and_other_calls_are_not() -> None:
    ops = [kernel(10, 20, correlation=1), copy_to_host(20, 30, correlation=2)]
    host = [
        call(0, 4, correlation=1),
        call(4, 8, "cudaMemcpyAsync", correlation=2),
        call(8, 9, "cudaStreamSynchronize", correlation=3),
        call(9, 10, "cudaEventRecord", correlation=4),
    ]
    found = statistics(ops, host)
    assert (found.launches, found.correlated_ops, found.uncorrelated_ops) == (2, 2, 0)
    assert found.call_p50_ns == 4.0


def test_a_driver_call_inside_the_runtime_call_counts_once() -> None:
    ops = [kernel(10, 20, correlation=2)]
    host = [call(0, 9, correlation=1), call(1, 8, "cuLaunchKernel", correlation=2, category="cuda_driver")]
    assert statistics(ops, host).launches == 1


def test_a_driver_call_beside_the_runtime_call_counts_for_itself() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(20, 30, correlation=2)]
    host = [call(0, 3, correlation=1), call(4, 8, "cuLaunchKernel", correlation=2, category="cuda_driver")]
    assert statistics(ops, host).launches == 2


def test_an_unrecorded_replay_counts_and_an_empty_set_does_not() -> None:
    ops = [kernel(10, 20, correlation=1)]
    host = [
        call(0, 1, correlation=1),
        call(2, 3, "cudaGraphLaunch", correlation=2),
        call(4, 5, "cudaMemsetAsync", correlation=3),
    ]
    assert statistics(ops, host).launches == 2


def test_launches_for_another_device_are_not_counted() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(10, 20, correlation=2, device=1)]
    unrecorded = call(4, 5, "cudaGraphLaunch", correlation=3, thread="b")
    host = [call(0, 1, correlation=1, thread="a"), call(2, 3, correlation=2, thread="b"), unrecorded]
    assert statistics(ops, host, device=0).launches == 1
    assert statistics(ops, host, device=1).launches == 2


def test_a_graph_launch_has_one_delay_to_its_first_operation() -> None:
    ops = [kernel(100 + 10 * i, 105 + 10 * i, correlation=1) for i in range(5)]
    found = statistics(ops, [call(40, 50, "cudaGraphLaunch", correlation=1)])
    assert (found.delay_p50_ns, found.delay_p90_ns) == (60.0, 60.0)
    assert found.correlated_ops == 5


def test_launches_without_recorded_work_are_in_no_queue() -> None:
    ops = [kernel(10, 20, correlation=1)]
    host = [call(0, 1, correlation=1), call(30, 31, correlation=2), call(40, 41, correlation=3)]
    found = statistics(ops, host)
    assert (found.launches, found.tied_launches, found.empty_queue_share) == (3, 1, 1.0)


def test_rate_counts_intervals_between_launches() -> None:
    ops = [kernel(10_000_000 * i + 9, 10_000_000 * i + 10, correlation=i + 1) for i in range(3)]
    host = [call(10_000_000 * i, 10_000_000 * i + 1, correlation=i + 1) for i in range(3)]
    assert statistics(ops, host).rate_per_s == 100.0


def test_a_launch_that_finds_the_device_drained_found_an_empty_queue() -> None:
    ops = [kernel(10, 20, correlation=1), kernel(20, 40, correlation=2), kernel(60, 70, correlation=3)]
    host = [call(0, 1, correlation=1), call(5, 6, correlation=2), call(50, 51, correlation=3)]
    found = statistics(ops, host)
    assert (found.queue_depth_p50, found.queue_depth_max) == (0.0, 1)
    assert found.empty_queue_share == 2 / 3


def test_work_whose_launch_is_not_recorded_occupies_the_queue_while_it_runs() -> None:
    ops = [kernel(0, 100), kernel(110, 120, correlation=1)]
    assert statistics(ops, [call(50, 51, correlation=1)]).empty_queue_share == 0.0
    assert statistics(ops, [call(105, 106, correlation=1)]).empty_queue_share == 1.0


def test_a_short_kernel_runs_for_less_than_its_launch_call_took() -> None:
    short, long = kernel(20, 24, correlation=1), kernel(30, 40, correlation=2)
    node, copy = kernel(60, 61, correlation=3), copy_to_host(70, 71, correlation=4)
    host = [
        call(0, 5, correlation=1),
        call(5, 10, correlation=2),
        call(10, 50, "cudaGraphLaunch", correlation=3),
        call(50, 60, "cudaMemcpyAsync", correlation=4),
    ]
    second_node = kernel(62, 63, correlation=3)
    assert statistics([short, long, node, second_node, copy], host).shorter_than_call_share == 0.5


def test_nothing_to_measure_is_none_and_not_zero() -> None:
    found = statistics([kernel(0, 10)], [])
    assert found == LaunchStats(0, 0, 1, None, None, None, None, None, None, None, None, None)


moments = st.integers(0, 30)


@given(
    st.lists(st.tuples(moments, moments, st.integers(0, 9), st.booleans()), max_size=10), st.lists(moments)
)
def test_queue_depth_agrees_with_counting(rows: list[tuple[int, int, int, bool]], at: list[int]) -> None:
    ops = [kernel(s, s + n, correlation=i if known else -1) for i, (_, s, n, known) in enumerate(rows, 1)]
    host = [call(c, c + 1, correlation=i) for i, (c, _, _, known) in enumerate(rows, 1) if known]
    trace = trace_of(ops, host)
    table = ops_of(trace)
    queued = [(c if known else s, s + n) for c, s, n, known in rows]
    expected = [sum(came < t < max(done, came + 1) for came, done in queued) for t in at]
    with one_clock():
        launched = launched_by(trace, table)
    assert queue_depth(table, launched, np.array(at, np.int64)).tolist() == expected
