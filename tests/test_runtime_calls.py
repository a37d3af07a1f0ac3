"""What runtime calls are for, and which call launched which operation."""

from __future__ import annotations

import pytest

from layers.layer1_gpu_busy.runtime_calls import NO_CALL, Purpose, launched_by, purpose_of, runtime_calls
from tests.builders import call, kernel, operator, ops_of, trace_of


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("cudaLaunchKernel", Purpose.LAUNCH),
        ("cudaLaunchKernelExC", Purpose.LAUNCH),
        ("cudaLaunchCooperativeKernel", Purpose.LAUNCH),
        ("cuLaunchKernelEx", Purpose.LAUNCH),
        ("hipLaunchKernel", Purpose.LAUNCH),
        ("hipExtModuleLaunchKernel", Purpose.LAUNCH),
        ("hipModuleLaunchKernel", Purpose.LAUNCH),
        ("urEnqueueKernelLaunch", Purpose.LAUNCH),
        ("cudaGraphLaunch", Purpose.GRAPH_LAUNCH),
        ("hipGraphLaunch", Purpose.GRAPH_LAUNCH),
        ("cuGraphLaunch", Purpose.GRAPH_LAUNCH),
        ("cudaMemcpyAsync", Purpose.COPY),
        ("hipMemcpyWithStream", Purpose.COPY),
        ("cuMemcpyDtoHAsync_v2", Purpose.COPY),
        ("cudaMemsetAsync", Purpose.MEMSET),
        ("cudaStreamSynchronize", Purpose.SYNC),
        ("cudaDeviceSynchronize", Purpose.SYNC),
        ("cudaEventSynchronize", Purpose.SYNC),
        ("hipEventSynchronize", Purpose.SYNC),
        ("cuCtxSynchronize", Purpose.SYNC),
        ("cudaStreamWaitEvent", Purpose.OTHER),
        ("cudaEventQuery", Purpose.OTHER),
        ("cudaLaunchHostFunc", Purpose.OTHER),
        ("cudaGraphInstantiate", Purpose.OTHER),
        ("cudaMalloc", Purpose.OTHER),
    ],
)
def test_purpose_is_read_from_the_name(name: str, purpose: Purpose) -> None:
    assert purpose_of(name) == purpose


def test_only_runtime_and_driver_spans_are_calls() -> None:
    trace = trace_of(
        host=[operator(0, 9, "aten::mm"), call(1, 2), call(3, 4, "cuLaunchKernel", category="cuda_driver")]
    )
    assert len(runtime_calls(trace).spans) == 2


def test_every_operation_of_a_graph_is_tied_to_its_one_launch() -> None:
    trace = trace_of(
        ops=[kernel(10, 11, correlation=4), kernel(12, 13, correlation=4), kernel(20, 21, correlation=5)],
        host=[call(0, 2, "cudaGraphLaunch", correlation=4), call(3, 4, correlation=5)],
    )
    launched = launched_by(trace, ops_of(trace))
    assert launched.known.tolist() == [True, True, True]
    assert launched.start_ns.tolist() == [0, 0, 3]
    assert launched.by(Purpose.GRAPH_LAUNCH).tolist() == [True, True, False]


def test_an_operation_whose_launch_is_not_recorded_has_no_call() -> None:
    trace = trace_of(ops=[kernel(0, 1), kernel(2, 3, correlation=9)], host=[call(0, 1, correlation=5)])
    launched = launched_by(trace, ops_of(trace))
    assert launched.call.tolist() == [NO_CALL, NO_CALL]
    assert not launched.known.any()


def test_an_id_below_all_recorded_calls_was_launched_before_the_recording() -> None:
    ops = [kernel(0, 1, correlation=3), kernel(2, 3, correlation=9), kernel(4, 5)]
    recorded = [kernel(6 + i, 7 + i, correlation=5 + i) for i in range(3)]
    calls = [call(i, i + 1, correlation=5 + i) for i in range(3)]
    trace = trace_of(ops=[*ops, *recorded], host=calls)
    assert launched_by(trace, ops_of(trace)).before_recording.tolist() == [True, *[False] * 5]
    mostly_unseen = trace_of(ops=[*ops, *recorded[:2]], host=calls[:2])
    assert not launched_by(mostly_unseen, ops_of(mostly_unseen)).before_recording.any()


def test_correlation_zero_ties_nothing() -> None:
    trace = trace_of(ops=[kernel(5, 6, correlation=0)], host=[call(0, 1, correlation=0)])
    assert not launched_by(trace, ops_of(trace)).known.any()


def test_a_call_of_unknown_name_that_launched_something_is_a_launch() -> None:
    trace = trace_of(
        ops=[kernel(5, 6, correlation=2)],
        host=[call(0, 1, "INVALID", correlation=2), call(1, 2, "INVALID", correlation=3)],
    )
    launched = launched_by(trace, ops_of(trace))
    assert launched.calls.purpose.tolist() == [Purpose.LAUNCH, Purpose.OTHER]


def test_a_trace_without_calls_ties_nothing() -> None:
    trace = trace_of(ops=[kernel(0, 1, correlation=7)])
    launched = launched_by(trace, ops_of(trace))
    assert not launched.known.any()
    assert not launched.by(Purpose.LAUNCH).any()


def test_rows_taken_for_no_operation_have_no_call() -> None:
    trace = trace_of(ops=[kernel(5, 6, correlation=2)], host=[call(0, 1, correlation=2)])
    launched = launched_by(trace, ops_of(trace))
    assert launched.take(launched.call * 0 - 1).known.tolist() == [False]
