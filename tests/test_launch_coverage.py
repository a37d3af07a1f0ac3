"""Launch calls against recorded operations: one launch counts once, and captures run nothing by design."""

from __future__ import annotations

from layers.layer1_gpu_busy.coverage import check_coverage
from layers.layer1_gpu_busy.model import LaunchCoverage
from tests.builders import Op, Span, call, kernel, trace_of

BEGIN, END = "cudaStreamBeginCapture_ptsz", "cudaStreamEndCapture"


def coverage(*host: Span, ops: tuple[Op, ...] = ()) -> LaunchCoverage:
    return check_coverage(trace_of([*ops], [*host]))


def driver_call(start: int, end: int, correlation: int) -> Span:
    return call(start, end, "cuLaunchKernelEx", correlation=correlation, category="cuda_driver")


def test_a_launch_is_covered_by_an_operation_with_its_id_on_any_device() -> None:
    ops = (kernel(10, 20, correlation=1), kernel(30, 40, correlation=2, device=1))
    found = coverage(
        call(0, 5, correlation=1), call(6, 8, correlation=3), call(9, 12, correlation=2), ops=ops
    )
    assert found == LaunchCoverage(launches=3, without_operations=1, captured=0)


def test_launches_after_the_last_one_that_ran_are_counted_apart_too() -> None:
    calls = [call(0, 5, correlation=1), call(6, 8, correlation=2), call(9, 12, correlation=3)]
    found = coverage(*calls, ops=(kernel(10, 20, correlation=1),))
    assert found == LaunchCoverage(launches=3, without_operations=2, captured=0, at_the_end=2)


def test_no_id_and_id_0_tie_nothing() -> None:
    ops = (kernel(10, 20), kernel(30, 40, correlation=0))
    found = coverage(call(0, 5), call(6, 8, correlation=0), ops=ops)
    assert found.without_operations == 2


def test_a_driver_call_inside_a_runtime_call_is_one_launch_whichever_carries_the_id() -> None:
    for tied in (1, 2):
        pair = (call(0, 10, correlation=1), driver_call(0, 10, correlation=2))
        found = coverage(*pair, ops=(kernel(20, 30, correlation=tied),))
        assert found == LaunchCoverage(launches=1, without_operations=0, captured=0)


def test_a_nested_call_does_not_cover_its_neighbour() -> None:
    host = (call(0, 5, correlation=1), driver_call(6, 9, correlation=3), call(6, 10, correlation=2))
    for own, missing in ((1, 0), (9, 1)):
        ops = (kernel(12, 15, correlation=own), kernel(20, 30, correlation=3))
        found = coverage(*host, ops=ops)
        assert found == LaunchCoverage(launches=2, without_operations=missing, captured=0)


def test_launches_of_other_threads_at_the_same_time_are_launches_of_their_own() -> None:
    found = coverage(call(0, 10, correlation=1), call(2, 5, correlation=2, thread="other"))
    assert found.launches == 2


def test_graph_launches_copies_and_host_functions_are_no_kernel_launches() -> None:
    names = ("cudaGraphLaunch", "cudaMemcpyAsync", "cudaLaunchHostFunc", "cudaStreamSynchronize")
    assert coverage(*(call(10 * i, 10 * i + 5, name) for i, name in enumerate(names))).launches == 0


def test_launches_between_begin_and_end_of_a_capture_are_captured() -> None:
    host = (call(10, 11, BEGIN), call(12, 13), call(14, 15), call(16, 17, END), call(18, 19))
    assert coverage(*host) == LaunchCoverage(launches=1, without_operations=1, captured=2)


def test_a_capture_that_never_ends_runs_to_the_end_of_the_trace() -> None:
    assert coverage(call(10, 11, BEGIN), call(12, 13)).captured == 1


def test_a_capture_that_ended_before_the_recording_began_captures_nothing() -> None:
    host = (call(1, 2), call(3, 4, END), call(10, 11, BEGIN), call(12, 13), call(14, 15, END), call(16, 17))
    assert coverage(*host) == LaunchCoverage(launches=2, without_operations=2, captured=1)


def test_another_threads_launches_are_not_captured() -> None:
    host = (call(10, 11, BEGIN), call(12, 13, thread="other"), call(14, 15, END))
    assert coverage(*host).captured == 0


def test_what_ran_although_a_capture_was_open_was_not_captured() -> None:
    """Warm-up work on a side stream of the capturing thread."""
    host = (call(10, 11, BEGIN), call(12, 13, correlation=1), call(14, 15, correlation=2), call(16, 17, END))
    found = coverage(*host, ops=(kernel(20, 30, correlation=1),))
    assert found == LaunchCoverage(launches=1, without_operations=0, captured=1)
