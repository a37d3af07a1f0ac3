"""Any export, by the reader and by a slow second reading of it: same operations, same ratios, same
launches."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.busy import measure_busy, ops_of
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.nsys_sqlite import read_nsys_export
from tests.builders import one_clock
from tests.nsys_twin import launches, read_twin
from tests.writers.nsys import Generation, NsysBuilder

PIDS, ORDINALS, IDS = st.sampled_from([11, 12, 13]), st.integers(0, 1), st.integers(0, 6)
TIMES, LENGTHS = st.integers(1, 60), st.integers(0, 15)
WORK = st.tuples(
    st.sampled_from(["kernel", "memcpy", "memset", "replay"]), PIDS, ORDINALS, TIMES, LENGTHS, IDS
)
CALLS = st.tuples(PIDS, TIMES, IDS)


def export_of(
    work: list[tuple[str, int, int, int, int, int]], calls: list[tuple[int, int, int]]
) -> NsysBuilder:
    export = NsysBuilder(Generation.V3_25, mapped=False)
    for kind, pid, device, start, length, correlation in work:
        at = {"pid": pid, "device": device}
        if kind == "kernel":
            export.kernel("k", start, length, correlation=correlation, **at)
        elif kind == "memcpy":
            export.memcpy(start, length, correlation=correlation, **at)
        elif kind == "memset":
            export.memset(start, length, **at)
        else:
            export.replay(start, length, correlation=correlation, graph=1, **at)
    for pid, start, correlation in calls:
        export.call("cudaLaunchKernel_v7000", start, correlation=correlation, pid=pid)
    return export


@given(st.lists(WORK, min_size=1, max_size=12), st.lists(CALLS, min_size=1, max_size=8))
def test_operations_ratios_and_launches_are_those_of_the_slow_reading(
    work: list[tuple[str, int, int, int, int, int]], calls: list[tuple[int, int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        path = export_of(work, calls).write(Path(folder) / "export.sqlite")
        found, twin, called = read_nsys_export(str(path)), read_twin(path), launches(path)
    trace = found.trace
    assert {(d.pid, d.ordinal) for d in found.devices} == set(twin)
    for device in found.devices:
        ops = ops_of(trace, device.device)
        expected = twin[device.pid, device.ordinal]
        ratios = measure_busy(trace, ops).device_window
        assert len(ops) == device.operations == sum(expected.rows.values())
        assert ratios.window.length_ns == expected.window_ns
        assert (ratios.device_op_ns, ratios.kernel_ns) == (expected.busy_ns, expected.kernel_ns)
    pid_of = {d.device: d.pid for d in found.devices}
    with one_clock():
        launched = launched_by(trace, trace.device_ops)
    for i in range(len(trace.device_ops)):
        id_in_process = int(trace.device_ops.correlation[i]) & 0xFFFFFFFF
        has_id = trace.device_ops.correlation[i] > 0
        start = called.get((pid_of[int(trace.device_ops.device[i])], id_in_process)) if has_id else None
        assert (int(launched.start_ns[i]) if launched.known[i] else None) == start


@given(st.lists(WORK, min_size=1, max_size=12))
def test_the_tables_are_sorted_as_those_of_a_trace_are(
    work: list[tuple[str, int, int, int, int, int]],
) -> None:
    with TemporaryDirectory() as folder:
        path = export_of(work, [(11, 5, 1)]).write(Path(folder) / "export.sqlite")
        ops = read_nsys_export(str(path)).trace.device_ops
    keys = list(zip(ops.start_ns.tolist(), (-ops.end_ns).tolist(), strict=True))
    assert keys == sorted(keys)
    assert np.all(ops.end_ns >= ops.start_ns)
