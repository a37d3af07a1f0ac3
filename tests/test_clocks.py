"""Clocks of host and device, told by waits: a device whose times are late seems to work on after the host has
waited for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.layer1_gpu_busy.clocks import WAIT_TOLERANCE_NS, Clocks
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.launches import launch_statistics
from tests.builders import Op, Span, call, copy_to_host, kernel, ops_of, trace_of
from tests.layer1_traces import FIRST_NS, HOST_BOUND_NS, PERIOD_NS, analysed, checks
from tests.writers.chrome import TraceBuilder

LATE_NS = WAIT_TOLERANCE_NS + 1


def clocks(ops: list[Op], host: list[Span]) -> Clocks:
    trace = trace_of(ops, host)
    return launch_statistics(trace, ops_of(trace)).clocks


def late_device(by_ns: int) -> TraceBuilder:
    """200 kernels, then a wait for the device; times of the device lie so much too late."""
    trace = TraceBuilder()
    for number in range(200):
        call_ns = FIRST_NS + number * PERIOD_NS
        start_ns = call_ns + 300 + by_ns
        trace.launch("kernel", call_ns=call_ns, call_dur_ns=200, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
    trace.runtime_call("cudaDeviceSynchronize", FIRST_NS + 200 * PERIOD_NS, 4_000)
    return trace


def test_a_device_that_works_on_after_the_wait_for_it_keeps_another_clock(tmp_path: Path) -> None:
    analysis = analysed(late_device(6 * PERIOD_NS), tmp_path)
    found, device = checks(analysis)["PK137"], analysis.devices[0]
    assert found.fired and "1 of 1 wait returned before what it was for" in found.message
    assert device.launches is not None and device.launches.delay_p50_ns is None
    assert device.idle is not None and device.idle.by_cause_ns[Cause.QUEUED] == 0
    assert device.idle.by_cause_ns[Cause.UNKNOWN] == device.idle.idle_ns > 0


@pytest.mark.parametrize("by_ns", [0, WAIT_TOLERANCE_NS])
def test_one_clock_has_waits_that_return_after_their_work(by_ns: int, tmp_path: Path) -> None:
    found = checks(analysed(late_device(by_ns), tmp_path))["PK137"]
    assert not found.fired and "0 of 1 wait" in found.message


def reading(number: int, ended_ns: int, *, then: str = "cudaStreamSynchronize") -> tuple[Op, list[Span]]:
    """A copy to the host and the wait that returns 20 ns after the call for it, and when the copy ended."""
    at_ns = 1_000_000 * number
    host = [
        call(at_ns, at_ns + 10, "cudaMemcpyAsync", correlation=number),
        call(at_ns + 10, at_ns + 30, then),
    ]
    return copy_to_host(at_ns + 5, at_ns + ended_ns, correlation=number), host


def read_all(*ended_ns: int, then: str = "cudaStreamSynchronize") -> Clocks:
    ops, host = zip(*(reading(n, end, then=then) for n, end in enumerate(ended_ns, start=1)), strict=True)
    return clocks([*ops], [span for spans in host for span in spans])


def test_the_wait_right_after_a_copy_to_the_host_is_for_it() -> None:
    late, timely = 30 + LATE_NS, 30 + WAIT_TOLERANCE_NS
    assert read_all(late, late, timely, timely) == Clocks(0.0, 4, 2)
    assert not read_all(late, late, timely, timely).agree
    assert read_all(late, timely, timely).agree


def test_waits_for_events_and_after_kernels_are_for_something_else() -> None:
    assert read_all(40 + LATE_NS, then="cudaEventSynchronize") == Clocks(0.0)
    host = [call(0, 10, correlation=1), call(10, 30, "cudaStreamSynchronize")]
    assert clocks([kernel(5, 40 + LATE_NS, correlation=1)], host) == Clocks(0.0)


def test_a_wait_for_the_device_is_for_what_was_launched_since_the_one_before() -> None:
    host = [
        *(call(0, 10, correlation=1), call(20, 30, "cudaDeviceSynchronize")),
        *(call(40, 50, correlation=2), call(60, 70, "cudaDeviceSynchronize")),
        *(call(80, 90, "cudaDeviceSynchronize"), call(95, 99, correlation=3)),
    ]
    late = 40 + LATE_NS
    ops = [kernel(5, late, correlation=1), kernel(55, 65, correlation=2), kernel(97, late, correlation=3)]
    assert clocks(ops, host) == Clocks(0.0, 2, 1)


def test_of_several_devices_no_wait_tells_which_it_was_for() -> None:
    host = [
        *(call(0, 10, correlation=1), call(12, 14, correlation=2)),
        call(20, 30, "cudaDeviceSynchronize"),
    ]
    ops = [kernel(15, 40 + LATE_NS, correlation=1), kernel(15, 25, correlation=2, device=1)]
    trace = trace_of(ops, host)
    one = trace.device_ops.select(trace.device_ops.device == 0)
    assert launch_statistics(trace, one).clocks == Clocks(0.0)
