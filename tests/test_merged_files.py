"""Ranks merged into one file are known by correlation ids that name several launches (PK139); what one
process writes is not taken for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.streams import ids_of_several_launches
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers.trace_model import KERNEL
from tests.builders import Op, call, kernel, trace_of
from tests.layer1_traces import PERIOD_NS, analysed, checks
from tests.writers.chrome import HOST_PID, MAIN_TID, TraceBuilder

LAUNCHES = 300
ID = range(1, LAUNCHES + 1)
Make = Callable[[], TraceBuilder]


def at(number: int) -> int:
    return 1_000_000 + number * PERIOD_NS


def ranks(
    *, hosts: int = 2, late_ns: int = 4_800, threads: int = 1, devices: tuple[int, int] = (0, 0)
) -> TraceBuilder:
    """Two ranks with ids of their own, the second `late_ns` after the first; `hosts` of them left calls."""
    trace = TraceBuilder(flows=False)
    for rank, device in enumerate(devices):
        for i in ID:
            start_ns = at(i) + rank * late_ns
            if rank < hosts:
                tid = MAIN_TID + rank * (threads - 1)
                trace.runtime_call("cudaLaunchKernel", start_ns - 500, 300, correlation=i, tid=tid)
            trace.kernel(f"kernel_{i % 7}", start_ns, 4_600, correlation=i, device=device)
    return trace


def in_step(*, stream: int = 7, hosts: int = 1, copies: bool = False) -> TraceBuilder:
    """Two ranks whose ids meet on launches of different kernels, with none of their stream between them; the
    second's on `stream`, or as copies."""
    trace = TraceBuilder(flows=False)
    for i in ID:
        trace.runtime_call("cudaLaunchKernel", at(i) - 500, 300, correlation=i)
        trace.kernel(f"kernel_{i % 7}", at(i), 4_000, correlation=i)
        if hosts > 1:
            trace.runtime_call("cudaLaunchKernel", at(i) - 450, 200, correlation=i)
        if copies:
            trace.memcpy("HtoD", at(i) + 4_100, 4_000, correlation=i, stream=stream)
        else:
            trace.kernel(f"other_{i % 5}", at(i) + 4_100, 4_000, correlation=i, stream=stream)
    return trace


def one_rank(add: Callable[[TraceBuilder, int], None]) -> TraceBuilder:
    """Launches of one process, each with something that belongs to it."""
    trace = TraceBuilder(flows=False)
    for i in ID:
        trace.runtime_call("cudaLaunchKernel", at(i) - 3_000, 2_000, correlation=i)
        trace.kernel(f"kernel_{i % 7}", at(i), 4_600, correlation=i)
        add(trace, i)
    return trace


def driver_call(trace: TraceBuilder, i: int) -> None:
    trace.runtime_call("cuLaunchKernel", at(i) - 2_500, 500, correlation=i, category="cuda_driver")
    trace.runtime_call("cuLaunchKernel", at(i) - 1_900, 500, correlation=i, category="cuda_driver")


def written_twice(trace: TraceBuilder, i: int) -> None:
    trace.runtime_call("cudaLaunchKernel", at(i) - 3_000, 2_000, correlation=i)
    trace.kernel(f"kernel_{i % 7}", at(i), 4_600, correlation=i)


def helper_kernel(trace: TraceBuilder, i: int) -> None:
    trace.kernel("__amd_rocclr_gwsInit", at(i) - 200, 100, correlation=i)


def first_use_memset(trace: TraceBuilder, i: int) -> None:
    trace.memset(at(i) - 200, 100, correlation=i)


def copy_in_parts(trace: TraceBuilder, i: int) -> None:
    trace.runtime_call("hipMemcpyAsync", at(i) + 4_700, 200, correlation=LAUNCHES + i)
    for part in range(3):
        trace.memcpy("HtoD", at(i) + 5_000 + part * 1_000, 900, correlation=LAUNCHES + i)


def replay(trace: TraceBuilder, i: int) -> None:
    trace.runtime_call("hipGraphLaunch", at(i) + 4_700, 200, correlation=LAUNCHES + i)
    for node in range(3):
        trace.kernel("same", at(i) + 5_000 + node * 1_000, 900, correlation=LAUNCHES + i)


def replays_without_a_host() -> TraceBuilder:
    trace = TraceBuilder(flows=False)
    for i in ID:
        for node in range(3):
            trace.kernel(f"node_{node}", at(i) + node * 1_000, 900, correlation=i)
    return trace


def on_two_devices() -> TraceBuilder:
    """One call that launches on each device."""
    return one_rank(lambda trace, i: trace.kernel(f"kernel_{i % 7}", at(i), 4_600, correlation=i, device=1))


MERGED: dict[str, Make] = {
    "one process id": ranks,
    "several threads": lambda: ranks(threads=2),
    "host of one": lambda: ranks(hosts=1),
    "no host": lambda: ranks(hosts=0),
    "no host, interleaved": lambda: ranks(hosts=0, late_ns=3 * PERIOD_NS // 2),
    "side by side": lambda: ranks(late_ns=100),
}
HONEST: dict[str, Make] = {
    **{
        make.__name__: lambda make=make: one_rank(make)  # type: ignore[misc]
        for make in (driver_call, written_twice, helper_kernel, first_use_memset, copy_in_parts, replay)
    },
    "replays without a host": replays_without_a_host,
    "on two devices": on_two_devices,
}


@pytest.mark.parametrize("busy_only", [False, True], ids=["whole", "busy only"])
@pytest.mark.parametrize("name", MERGED)
def test_one_device_number_for_two_is_void(name: str, busy_only: bool, tmp_path: Path) -> None:
    analysis = analysed(MERGED[name](), tmp_path, busy_only=busy_only)
    found = checks(analysis)["PK139"]
    assert found.fired and "300 of its 300 correlation ids name several launches" in found.message
    assert judge_traces([analysis], Thresholds()).verdict.word == Word.VOID


@pytest.mark.parametrize(
    "make",
    [in_step, lambda: in_step(stream=8), lambda: in_step(stream=8, copies=True), lambda: in_step(hosts=2)],
    ids=["other names", "other streams", "copies", "calls of both"],
)
def test_a_plain_launch_call_makes_one_operation(make: Make, tmp_path: Path) -> None:
    analysis = analysed(make(), tmp_path)
    found = checks(analysis)["PK139"]
    assert found.fired and "300 of its 300 correlation ids name several launches" in found.message
    assert judge_traces([analysis], Thresholds()).verdict.word == Word.VOID


@pytest.mark.parametrize("busy_only", [False, True], ids=["whole", "busy only"])
@pytest.mark.parametrize("name", HONEST)
def test_what_one_process_writes_is_one_process(name: str, busy_only: bool, tmp_path: Path) -> None:
    assert not checks(analysed(HONEST[name](), tmp_path, busy_only=busy_only))["PK139"].fired


def test_ranks_with_devices_of_their_own_keep_their_ratios(tmp_path: Path) -> None:
    analysis = analysed(ranks(devices=(0, 1)), tmp_path)
    found = checks(analysis)["PK139"]
    assert found.fired and "that do not belong together share 300 correlation ids" in found.message
    assert judge_traces([analysis], Thresholds()).verdict.directional


def test_a_slip_of_the_profiler_is_no_second_process(tmp_path: Path) -> None:
    trace = one_rank(lambda trace, i: None)
    for i in ID[:3]:
        trace.runtime_call("cudaLaunchKernel", at(i) + 5_000, 100, correlation=i)
        trace.kernel(f"kernel_{i % 7}", at(i) + 6_000, 500, correlation=i)
    assert not checks(analysed(trace, tmp_path))["PK139"].fired


def test_ids_of_two_processes_are_told_as_before(tmp_path: Path) -> None:
    trace = one_rank(lambda trace, i: None)
    trace.runtime_call("cudaLaunchKernel", at(1), 100, correlation=1, pid=HOST_PID + 1)
    assert checks(analysed(trace, tmp_path))["PK139"].fired


def twin(ops: list[Op], replayed: set[int]) -> Iterator[int]:
    """Ids that name several launches, one after another."""
    for stream in {op.stream for op in ops}:
        on_it = sorted((op for op in ops if op.stream == stream), key=lambda op: (op.start, op.correlation))
        for id_ in {op.correlation for op in on_it if op.correlation > 0} - replayed:
            places = [i for i, op in enumerate(on_it) if op.correlation == id_]
            mine = [on_it[i] for i in places]
            if len(mine) > 1 and all(op.kind == KERNEL and not op.graph_id for op in mine):
                apart = places[-1] - places[0] >= len(mine)
                if apart or len({op.name for op in mine}) == 1:
                    yield id_


operations = st.builds(
    Op,
    start=st.integers(0, 20),
    end=st.just(21),
    name=st.sampled_from("ab"),
    kind=st.sampled_from([KERNEL, KERNEL, KERNEL, 1]),
    correlation=st.integers(-1, 6),
    stream=st.integers(7, 8),
    graph_id=st.sampled_from([0, 0, 0, 3]),
)


@given(st.lists(operations, min_size=1, max_size=12, unique_by=lambda op: (op.start, op.correlation)))
def test_ids_agree_with_a_look_at_each(ops: list[Op]) -> None:
    trace = trace_of([*ops, kernel(0, 1, stream=9)], [call(0, 1, "cudaGraphLaunch", correlation=5)])
    assert ids_of_several_launches(trace, trace.device_ops)[0] == len(list(twin(ops, {5})))
