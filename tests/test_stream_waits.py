"""Gaps between neighbours on one stream, as HTA classes them."""

from __future__ import annotations

from layers.layer1_gpu_busy.idle import KERNEL_WAIT_BELOW_NS, stream_waits
from layers.layer1_gpu_busy.idle_model import StreamWait
from parsers.trace_model import NO_STREAM
from tests.builders import Op, Span, call, kernel, ops_of, trace_of

EARLY = -1000
LATE = 50_000


def waits(ops: list[Op], host: list[Span]) -> tuple[StreamWait, ...]:
    trace = trace_of(ops, host)
    return stream_waits(trace, ops_of(trace))


def test_a_launch_after_the_previous_operation_ended_is_host_wait() -> None:
    ops = [kernel(0, 10), kernel(100, 110, correlation=1)]
    assert waits(ops, [call(11, 12, correlation=1)]) == (StreamWait(7, 1, 90, 0, 0),)


def test_an_earlier_launch_makes_a_brief_gap_kernel_wait_and_a_long_one_other() -> None:
    host = [call(EARLY, EARLY + 1, correlation=1)]
    brief = KERNEL_WAIT_BELOW_NS - 1
    assert waits([kernel(0, 10), kernel(10 + brief, LATE, correlation=1)], host) == (
        StreamWait(7, 1, 0, brief, 0),
    )
    long = KERNEL_WAIT_BELOW_NS
    assert waits([kernel(0, 10), kernel(10 + long, LATE, correlation=1)], host) == (
        StreamWait(7, 1, 0, 0, long),
    )


def test_an_operation_without_its_launch_shows_no_host_wait() -> None:
    assert waits([kernel(0, 10), kernel(30, 40, correlation=5)], []) == (StreamWait(7, 1, 0, 20, 0),)


def test_overlap_on_one_stream_leaves_no_negative_gap() -> None:
    ops = [kernel(0, 50), kernel(10, 20), kernel(60, 70)]
    assert waits(ops, []) == (StreamWait(7, 1, 0, 10, 0),)


def test_streams_are_apart_and_operations_without_a_stream_are_left_out() -> None:
    ops = [
        kernel(0, 10, stream=3),
        kernel(12, 20, stream=9),
        kernel(25, 30, stream=3),
        kernel(0, 5, stream=NO_STREAM),
        kernel(90, 95, stream=NO_STREAM),
    ]
    assert waits(ops, []) == (StreamWait(3, 1, 0, 15, 0), StreamWait(9, 0, 0, 0, 0))


def test_a_device_without_operations_has_no_streams() -> None:
    assert waits([], []) == ()
