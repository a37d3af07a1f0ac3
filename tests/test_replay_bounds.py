"""Graph replays that were not recorded: the bounds on the busy ratio hold, whatever the replays ran.

The property builds a trace with all of its operations, hides those of some graph launches, and compares
with a twin that counts single nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.model import ReplayCheck
from layers.layer1_gpu_busy.replays import check_replays
from parsers.trace_model import DeviceTrace, Track
from tests.builders import Op, Span, call, kernel, ops_of, trace_of

Ticks = set[int]
"""Nanoseconds during which something runs."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch call and what it ran: (start after the call began, duration) of each operation."""

    start: int
    call_length: int
    nodes: tuple[tuple[int, int], ...]
    hidden: bool
    thread: str
    device: int

    @property
    def call_end(self) -> int:
        return self.start + self.call_length

    def ops(self, correlation: int) -> list[Op]:
        spans = ((self.start + delay, self.start + delay + dur) for delay, dur in self.nodes)
        return [kernel(start, end, correlation=correlation, device=self.device) for start, end in spans]


@dataclass(frozen=True, slots=True)
class Wait:
    """A whole-device wait; it ends `slack` after all that was launched on its device before it began."""

    start: int
    slack: int
    thread: str
    device: int

    def end(self, launches: Iterable[Launch]) -> int:
        before = (x for x in launches if x.device == self.device and x.call_end <= self.start)
        ends = [op.end for x in before for op in x.ops(0)]
        return max([self.start, *ends]) + self.slack


nodes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=4).map(tuple)
threads = st.sampled_from(["main", "other"])


def launches(devices: int) -> st.SearchStrategy[list[Launch]]:
    one = st.builds(
        Launch,
        start=st.integers(0, 150),
        call_length=st.integers(1, 15),
        nodes=nodes,
        hidden=st.booleans(),
        thread=threads,
        device=st.integers(0, devices - 1),
    )
    return st.lists(one, min_size=1, max_size=8)


def waits(devices: int) -> st.SearchStrategy[list[Wait]]:
    device = st.integers(0, devices - 1)
    one = st.builds(Wait, st.integers(0, 200), st.integers(0, 10), threads, device)
    return st.lists(one, max_size=3)


def traces(work: list[Launch], waiting: list[Wait]) -> tuple[DeviceTrace, DeviceTrace]:
    """The trace with everything in it, and the same without the operations of hidden launches.

    A first kernel of device 0 is always seen, since a trace without any operation has no ratio.
    """
    seen: list[Op] = [kernel(20, 25)]
    hidden: list[Op] = []
    host = [call(w.start, w.end(work), "cudaDeviceSynchronize", thread=w.thread) for w in waiting]
    for number, launch in enumerate(work, start=1):
        name = "cudaGraphLaunch" if launch.hidden else "cudaLaunchKernel"
        host.append(call(launch.start, launch.call_end, name, correlation=number, thread=launch.thread))
        (hidden if launch.hidden else seen).extend(launch.ops(number))
    return trace_of([*seen, *hidden], host), trace_of(seen, host)


def ticks(trace: DeviceTrace) -> Ticks:
    ops = ops_of(trace)
    pairs = zip(ops.start_ns.tolist(), ops.end_ns.tolist(), strict=True)
    return {tick for start, end in pairs for tick in range(start, end)}


def device_window(trace: DeviceTrace) -> range:
    ops = ops_of(trace)
    return range(int(ops.start_ns.min()), int(ops.end_ns.max()))


def possible_ranges(trace: DeviceTrace, work: list[Launch], waiting: list[Wait]) -> list[range]:
    """From each hidden launch to the end of the first whole-device wait that began after its call returned,
    or of the trace; waits prove nothing where several devices are seen."""
    assert trace.recorded_ns is not None
    proofs = sorted(waiting, key=lambda w: w.start) if len(set(trace.device_ops.device)) == 1 else []
    found = []
    for launch in (x for x in work if x.hidden):
        after = [w.end(work) for w in proofs if w.start >= launch.call_end]
        found.append(range(launch.start, after[0] if after else trace.recorded_ns[1]))
    return found


def bounds(check: ReplayCheck) -> tuple[float, float]:
    assert check.low_ratio is not None and check.high_ratio is not None
    return check.low_ratio, check.high_ratio


@given(st.sampled_from([1, 2]).flatmap(lambda n: st.tuples(launches(n), waits(n))))
def test_the_truth_lies_between_the_bounds_over_the_window_that_they_are_taken_over(
    drawn: tuple[list[Launch], list[Wait]],
) -> None:
    full, seen = traces(*drawn)
    ranges = possible_ranges(seen, *drawn)
    extents = [device_window(seen), *ranges]
    window = range(min(r.start for r in extents), max(r.stop for r in extents))
    possible = {tick for r in ranges for tick in r}
    low, high = bounds(check_replays(seen, ops_of(seen)))
    assert low == len(ticks(seen)) / len(window)
    assert high == len(ticks(seen) | possible) / len(window)
    assert low <= len(ticks(full) & set(window)) / len(window) <= high


@given(launches(1), waits(1))
def test_the_truth_lies_between_the_bounds_over_its_own_device_window(
    work: list[Launch], waiting: list[Wait]
) -> None:
    """Where the recording goes on until everything has run, the replays lie in the possible time, and filling
    it up to wherever they ended can only raise the ratio."""
    full, seen = traces(work, waiting)
    seen = replace(seen, recorded_ns=full.recorded_ns)
    low, high = bounds(check_replays(seen, ops_of(seen)))
    assert low <= len(ticks(full)) / len(device_window(full)) <= high


REPLAY = call(100, 110, "cudaGraphLaunch", correlation=9)
OPS = [kernel(0, 40), kernel(60, 100)]


def high_of(*host: Span, end_ns: int = 200, ops: Iterable[Op] = OPS) -> float:
    """The upper bound with a replay launched at 100 and a recording that ends at `end_ns`."""
    trace = replace(trace_of([*ops], [REPLAY, *host]), recorded_ns=(0, end_ns))
    return bounds(check_replays(trace, ops_of(trace)))[1]


def test_without_a_wait_the_replay_could_run_to_the_end_of_the_recording() -> None:
    assert high_of(end_ns=200) == 180 / 200
    assert high_of(end_ns=900) == 880 / 900


def test_a_wait_for_the_whole_device_ends_the_time_of_the_replay() -> None:
    assert high_of(call(110, 120, "cudaDeviceSynchronize")) == 100 / 120


def test_a_wait_for_one_stream_or_event_proves_nothing_about_the_device() -> None:
    stream, event = call(110, 120, "cudaStreamSynchronize"), call(110, 120, "cudaEventSynchronize")
    assert high_of(stream, event) == high_of()


def test_a_wait_that_began_before_the_launch_returned_need_not_have_waited_for_it() -> None:
    assert high_of(call(105, 120, "cudaDeviceSynchronize", thread="other")) == high_of()


def test_waits_prove_nothing_in_a_trace_of_several_devices() -> None:
    wait = call(110, 120, "cudaDeviceSynchronize")
    assert high_of(wait, ops=[*OPS, kernel(0, 40, device=1)]) == high_of()


def test_waits_prove_nothing_in_a_trace_of_several_processes() -> None:
    host = [REPLAY, call(110, 120, "cudaDeviceSynchronize", thread="other")]
    trace = replace(trace_of(OPS, host), recorded_ns=(0, 200))
    trace = replace(trace, tracks=[Track("1", "a", "", ""), Track("2", "b", "", "")])
    assert bounds(check_replays(trace, ops_of(trace)))[1] == high_of()


def test_a_launch_before_the_device_window_widens_it() -> None:
    trace = trace_of([kernel(50, 100)], [call(0, 10, "cudaGraphLaunch", correlation=9)])
    assert bounds(check_replays(trace, ops_of(trace))) == (0.5, 1.0)


def test_with_all_replays_recorded_both_bounds_are_the_busy_ratio_of_the_device_window() -> None:
    trace = trace_of([kernel(10, 20, correlation=9), kernel(30, 60, correlation=9)], [REPLAY])
    check = check_replays(trace, ops_of(trace))
    assert (check.launches, check.uncovered, check.graph_ops) == (1, 0, 2)
    assert bounds(check) == (0.8, 0.8)


def test_a_window_without_length_has_no_bounds() -> None:
    trace = trace_of([kernel(10, 10)])
    check = check_replays(trace, ops_of(trace))
    assert (check.low_ratio, check.high_ratio) == (None, None)


def test_a_driver_call_inside_the_runtime_call_is_the_same_launch() -> None:
    inner = call(102, 108, "cuGraphLaunch", correlation=10, category="cuda_driver")
    for id_that_the_operations_carry in (9, 10):
        trace = trace_of([kernel(110, 120, correlation=id_that_the_operations_carry)], [REPLAY, inner])
        check = check_replays(trace, ops_of(trace))
        assert (check.launches, check.uncovered) == (1, 0)


def test_a_launch_without_a_correlation_id_counts_as_not_recorded() -> None:
    trace = trace_of([kernel(110, 120)], [call(100, 105, "hipGraphLaunch")])
    assert check_replays(trace, ops_of(trace)).uncovered == 1


def test_a_replay_on_another_device_is_none_of_this_one() -> None:
    trace = trace_of([kernel(0, 40), kernel(110, 120, correlation=9, device=1)], [REPLAY])
    here, there = check_replays(trace, ops_of(trace)), check_replays(trace, ops_of(trace, 1))
    assert (here.launches, here.uncovered) == (0, 0)
    assert (there.launches, there.uncovered) == (1, 0)


def test_an_unrecorded_replay_counts_for_every_device() -> None:
    trace = trace_of([kernel(0, 40), kernel(0, 40, device=1)], [REPLAY])
    assert [check_replays(trace, ops_of(trace, device)).uncovered for device in (0, 1)] == [1, 1]
