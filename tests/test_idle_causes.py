"""Why the device idled: each rule on a trace built for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from layers.layer1_gpu_busy.idle_causes import EVENT_LOOP, LAUNCH_LATENCY_NS, WAITING_FRAME, split_by_cause
from layers.layer1_gpu_busy.idle_gaps import device_gaps
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.trace_model import PYTHON_FRAME_FLOOR_NS
from tests.builders import (
    Op,
    Span,
    annotation,
    call,
    copy_to_host,
    frame,
    kernel,
    one_clock,
    operator,
    ops_of,
    trace_of,
)

US = 1_000
LONG = 2 * PYTHON_FRAME_FLOOR_NS
WAIT = "<built-in method acquire of _thread.lock object at 0x7f>"


def causes(ops: Sequence[Op], host: Sequence[Span]) -> dict[Cause, int]:
    """Idle time by cause inside the device window, causes without any left out."""
    trace = trace_of(ops, host)
    table = ops_of(trace)
    window = Window("device", int(table.start_ns.min()), int(table.end_ns.max()))
    idle = device_gaps(table, window)
    parts = split_by_cause(trace, table, launched_by(trace, table), idle)
    assert np.sum(list(parts.values()), axis=0).tolist() == idle.length_ns.tolist()
    return {cause: int(part.sum()) for cause, part in parts.items() if part.sum()}


def gap(length: int, *host: Span, launch_at: int, call_length: int = 0) -> dict[Cause, int]:
    """Causes of one gap [0, length) that a kernel ends whose launch call started at `launch_at`."""
    launch = call(launch_at, launch_at + call_length, correlation=1)
    return causes([kernel(-100, 0), kernel(length, length + 10, correlation=1)], [launch, *host])


def test_a_launch_before_the_gap_means_queued_work() -> None:
    assert gap(LONG, launch_at=-50) == {Cause.QUEUED: LONG}
    assert gap(LONG, launch_at=0) == {Cause.QUEUED: LONG}


def test_what_starts_as_soon_as_a_launch_can_was_on_its_way() -> None:
    """The device was idle because the call came late, though it came before the gap."""
    assert gap(LAUNCH_LATENCY_NS, launch_at=0) == {Cause.LAUNCH_BOUND: LAUNCH_LATENCY_NS}
    assert gap(LAUNCH_LATENCY_NS + 1, launch_at=0) == {Cause.QUEUED: LAUNCH_LATENCY_NS + 1}
    in_the_call = gap(LAUNCH_LATENCY_NS, launch_at=-50, call_length=60)
    assert in_the_call == {Cause.LAUNCH_BOUND: LAUNCH_LATENCY_NS}


def test_nodes_of_a_running_graph_wait_for_each_other() -> None:
    nodes = [kernel(0, 10, correlation=1), kernel(30, 40, correlation=1)]
    assert causes(nodes, [call(-50, -40, "cudaGraphLaunch", correlation=1)]) == {Cause.QUEUED: 20}


def test_without_the_launch_the_cause_is_unknown() -> None:
    assert causes([kernel(0, 10), kernel(60, 70, correlation=8)], [call(0, 1, correlation=5)]) == {
        Cause.UNKNOWN: 50
    }


def _seen(at: int) -> list[Op]:
    """Operations without idle time between them, whose launches were recorded."""
    return [kernel(at + i, at + i + 1, correlation=100 + i) for i in range(9)]


def _calls_of_seen() -> list[Span]:
    return [call(0, 1, correlation=100 + i) for i in range(9)]


def test_what_was_launched_before_the_recording_was_queued() -> None:
    ops = [kernel(0, 10), kernel(60, 70, correlation=3), kernel(70, 80, correlation=5), *_seen(80)]
    assert causes(ops, [call(0, 1, correlation=5), *_calls_of_seen()]) == {Cause.QUEUED: 50}


def test_ids_below_all_others_tell_nothing_where_most_launches_were_not_recorded() -> None:
    ops = [kernel(0, 10, correlation=2), kernel(60, 70, correlation=3), kernel(70, 80, correlation=5)]
    assert causes(ops, [call(0, 1, correlation=5)]) == {Cause.UNKNOWN: 50}


def test_idle_after_the_last_operation_has_no_known_cause() -> None:
    trace = trace_of([kernel(0, 10, correlation=1)], [call(-5, -4, correlation=1)])
    table = ops_of(trace)
    idle = device_gaps(table, Window("recorded", 0, 100))
    parts = split_by_cause(trace, table, launched_by(trace, table), idle)
    assert parts[Cause.UNKNOWN].tolist() == [90]


def test_only_the_part_of_a_sync_that_lies_in_the_gap_counts() -> None:
    sync = call(-LONG, 300, "cudaStreamSynchronize")
    assert gap(LONG, sync, launch_at=LONG) == {Cause.SYNC: 300, Cause.NOTHING_SUBMITTED: LONG - 300}


def test_a_copy_that_returned_when_it_was_done_is_a_wait() -> None:
    ops = [copy_to_host(-100, 0, correlation=1), kernel(LONG, LONG + 9, correlation=2)]
    launch = call(LONG, LONG, correlation=2)
    waited = [call(-900, 40, "cudaMemcpyAsync", correlation=1), launch]
    assert causes(ops, waited)[Cause.COPY] == 40
    at_once = [call(-900, -890, "cudaMemcpyAsync", correlation=1), launch]
    assert Cause.COPY not in causes(ops, at_once)


def test_a_copy_call_that_always_waits_is_a_wait_by_its_name() -> None:
    blocking = call(0, 700, "hipMemcpyWithStream")
    assert gap(LONG, blocking, launch_at=LONG)[Cause.COPY] == 700
    brief = call(0, 700, "hipMemcpyAsync")
    assert gap(LONG, brief, launch_at=LONG)[Cause.LAUNCH_BOUND] == 700


def test_operators_that_launch_are_dispatch_however_long() -> None:
    dispatch = operator(10, LONG + 10, "aten::convolution")
    assert gap(LONG, dispatch, launch_at=LONG)[Cause.LAUNCH_BOUND] == LONG - 10


def test_a_long_operator_that_launches_nothing_is_host_work() -> None:
    collate = operator(0, LONG, "aten::stack")
    assert gap(2 * LONG, collate, launch_at=2 * LONG)[Cause.HOST_WORK] == LONG


def test_a_long_call_that_launches_nothing_is_host_work_even_inside_an_operator() -> None:
    dispatch = operator(0, LONG + 10, "aten::convolution")
    free = call(0, LONG - 10, "cudaFree")
    assert gap(LONG, dispatch, free, launch_at=LONG) == {Cause.HOST_WORK: LONG - 10, Cause.LAUNCH_BOUND: 10}


def test_short_pauses_between_calls_are_the_interpreter_on_its_way() -> None:
    short = PYTHON_FRAME_FLOOR_NS - 1
    before = call(-10, 0, correlation=9)
    assert gap(short + 1, before, launch_at=short, call_length=1) == {Cause.LAUNCH_BOUND: short + 1}
    long = PYTHON_FRAME_FLOOR_NS
    assert gap(long + 1, before, launch_at=long, call_length=1) == {
        Cause.NOTHING_SUBMITTED: long,
        Cause.LAUNCH_BOUND: 1,
    }


def test_frames_and_annotations_are_host_work() -> None:
    assert gap(LONG, frame(0, LONG, "scheduler.py(7): schedule"), launch_at=LONG) == {Cause.HOST_WORK: LONG}
    assert gap(LONG, annotation(0, LONG, "## prepare ##"), launch_at=LONG) == {Cause.HOST_WORK: LONG}


def test_a_step_marker_is_no_work() -> None:
    assert gap(LONG, annotation(0, LONG, "ProfilerStep#3"), launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_a_frame_that_waits_for_requests_is_not_work() -> None:
    loop, wait = frame(0, LONG, "scheduler.py(7): run"), frame(100, LONG, WAIT)
    assert gap(LONG, loop, wait, launch_at=LONG) == {
        Cause.HOST_WORK: 100,
        Cause.NOTHING_SUBMITTED: LONG - 100,
    }


def test_an_annotation_around_launches_says_nothing_of_the_time_between_them() -> None:
    served = annotation(-100, 2 * LONG, "serve_forever")
    assert gap(LONG, served, launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_other_threads_do_not_explain_a_gap() -> None:
    elsewhere = call(0, LONG, "cudaStreamSynchronize", thread="other")
    assert gap(LONG, elsewhere, launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_after_the_launch_call_returned_the_work_was_queued() -> None:
    queued = LAUNCH_LATENCY_NS + 1
    assert gap(LONG, launch_at=LONG - queued - 10, call_length=10) == {
        Cause.NOTHING_SUBMITTED: LONG - queued - 10,
        Cause.LAUNCH_BOUND: 10,
        Cause.QUEUED: queued,
    }


def test_a_kernel_that_seems_to_start_before_its_call_keeps_the_sum() -> None:
    with one_clock():
        assert gap(LONG, launch_at=LONG + 5, call_length=3) == {Cause.NOTHING_SUBMITTED: LONG}
    assert gap(LONG, launch_at=LONG + 5, call_length=3) == {Cause.UNKNOWN: LONG}


@pytest.mark.parametrize(
    "name",
    [
        WAIT,
        "<built-in function sleep>",
        "<method 'poll' of 'select.epoll' objects>",
        "threading.py(320): wait",
        "queue.py(171): get",
        "zmq/sugar/socket.py(911): recv",
        "shm_broadcast.py(495): acquire_read",
        "<method 'get' of '_queue.SimpleQueue' objects>",
        "multiprocessing/connection.py(390): _recv",
        "multiprocessing/queues.py(100): get",
        "scheduler.py(1011): recv_requests",
    ],
)
def test_known_waits(name: str) -> None:
    assert WAITING_FRAME.search(name)


@pytest.mark.parametrize("method", ["run_until_complete", "run_forever"])
def test_an_event_loop_is_no_wait_by_itself(method: str) -> None:
    name = f"<method '{method}' of 'uvloop.loop.Loop' objects>"
    assert EVENT_LOOP.search(name) and not WAITING_FRAME.search(name)


@pytest.mark.parametrize(
    "name", ["scheduler.py(10): get_next_batch", "nn.Module: Wait_0", "<built-in function zoom>"]
)
def test_work_is_not_taken_for_a_wait(name: str) -> None:
    assert not WAITING_FRAME.search(name)
