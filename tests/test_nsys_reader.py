"""Reading nsys exports: the tables of a trace, whatever the generation of nsys that wrote them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layers.layer1_gpu_busy.busy import kernel_time, ops_of
from layers.layer1_gpu_busy.copy_names import direction_of
from layers.layer1_gpu_busy.replays import check_replays
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.chrome_categories import Role
from parsers.nsys_model import GRAPH_MODE, NODE_MODE, NsysExport, Trouble
from parsers.nsys_sqlite import read_nsys_export
from parsers.trace_model import GRAPH, KERNEL, MEMCPY, MEMSET, DeviceTrace
from tests.writers.nsys import (
    DOMAIN,
    DRIVER,
    DTOH,
    MARK,
    PREFIX,
    START_END,
    STARTED_NS,
    UVM_HTOD,
    Generation,
    NsysBuilder,
)

ALL_GENERATIONS = pytest.mark.parametrize("generation", Generation, ids=lambda g: g.name)


def read(export: NsysBuilder, folder: Path, *, busy_only: bool = False) -> NsysExport:
    return read_nsys_export(str(export.write(folder / "export.sqlite")), busy_only=busy_only)


def names_of(trace: DeviceTrace) -> list[str]:
    """The names of the operations in the order of their starts."""
    return [trace.names[i] for i in trace.device_ops.name_id]


def host_names(trace: DeviceTrace, category: str) -> list[str]:
    wanted = trace.host.category_id == trace.categories.index(category)
    return [trace.names[i] for i in trace.host.name_id[wanted]]


@ALL_GENERATIONS
def test_every_generation_gives_the_same_operations_and_calls(generation: Generation, tmp_path: Path) -> None:
    export = NsysBuilder(generation)
    export.launch("gemm<float>", call_ns=100, start_ns=2_000, dur_ns=500)
    copy = export.call("cudaMemcpyAsync_v3020", 3_000)
    export.memcpy(4_000, 100, kind=DTOH, source=2, target=0, nbytes=64, correlation=copy)
    export.memset(5_000, 10, nbytes=32)
    export.range("forward", 50, 6_000)
    export.gpu(0, "NVIDIA A100")
    export.cuda_device(4242, 0, 0)
    trace = read(export, tmp_path).trace
    ops = trace.device_ops
    assert names_of(trace) == ["gemm<float>", "Memcpy DtoH (Device -> Pageable)", "Memset (Device)"]
    assert ops.kind.tolist() == [KERNEL, MEMCPY, MEMSET]
    assert list(zip(ops.start_ns.tolist(), ops.end_ns.tolist(), strict=True)) == [
        (2_000, 2_500),
        (4_000, 4_100),
        (5_000, 5_010),
    ]
    assert ops.nbytes.tolist() == [-1, 64, 32]
    assert (ops.device.tolist(), ops.stream.tolist(), ops.graph_id.tolist()) == ([0] * 3, [7] * 3, [0] * 3)
    assert host_names(trace, "cuda_runtime") == ["cudaLaunchKernel", "cudaMemcpyAsync"]
    assert host_names(trace, "user_annotation") == ["forward"]
    assert launched_by(trace, ops).known.tolist() == [True, True, False]
    assert trace.meta.device_names == {0: "NVIDIA A100"}
    assert trace.meta.versions == ({"nsys schema": generation.schema} if generation.schema else {})


def test_versions_of_a_table_are_found_by_their_suffix(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.kernel("a", 10, 5)
    export.tables[PREFIX + "KERNEL_V2"] = export.tables.pop(PREFIX + "KERNEL")
    assert names_of(read(export, tmp_path).trace) == ["a"]


@pytest.mark.parametrize("old", [0, 2])
def test_the_rows_of_an_older_version_of_a_table_are_counted_apart(old: int, tmp_path: Path) -> None:
    export = NsysBuilder()
    export.kernel("a", 10, 5)
    (row,) = export.tables[PREFIX + "KERNEL"]
    export.tables |= {PREFIX + "KERNEL": [row] * old, PREFIX + "KERNEL_V2": [row] * 3}
    trace = read(export, tmp_path).trace
    assert len(trace.device_ops) == 3
    unknown = [(one.category, one.events) for one in trace.inventory if one.role == Role.UNKNOWN_DEVICE]
    assert unknown == [(PREFIX + "KERNEL", old)] * bool(old)


def test_only_the_last_version_suffix_of_a_call_is_cut(tmp_path: Path) -> None:
    export = NsysBuilder()
    for name in ("cudaStreamGetCaptureInfo_v2_v11030", "cuLaunchKernel", "cudaMemcpyAsync_ptsz_v7000"):
        export.call(name, 10)
    calls = host_names(read(export, tmp_path).trace, "cuda_runtime")
    assert sorted(calls) == ["cuLaunchKernel", "cudaMemcpyAsync_ptsz", "cudaStreamGetCaptureInfo_v2"]


def test_driver_calls_are_told_from_runtime_calls(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.call("cuLaunchKernel", 10, event_class=DRIVER)
    assert host_names(read(export, tmp_path).trace, "cuda_driver") == ["cuLaunchKernel"]


def test_a_copy_names_its_direction_and_memory_and_a_migration_is_neither(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.memcpy(0, 10)
    export.memcpy(20, 10, kind=DTOH, source=2, target=1)
    export.memcpy(40, 10, kind=UVM_HTOD)
    export.memcpy(60, 10, kind=99, source=99)
    found = [direction_of(name) for name in names_of(read(export, tmp_path).trace)]
    assert found == ["HtoD pageable", "DtoH pinned", "migration HtoD", "unknown direction"]


def test_a_replay_recorded_as_a_whole_is_device_work_and_kernel_time(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.launch("eager", call_ns=0, start_ns=10, dur_ns=10)
    export.graph_launch(30, start_ns=40, dur_ns=60, graph=4)
    found = read(export, tmp_path)
    ops = ops_of(found.trace, 0)
    assert (ops.kind.tolist(), ops.graph_id.tolist()) == ([KERNEL, GRAPH], [0, 4])
    assert kernel_time(ops).end.tolist() == [20, 100]
    assert found.capture.cuda_graphs == GRAPH_MODE
    assert check_replays(found.trace, ops).uncovered == 0


def test_nodes_of_a_replay_cover_their_launch(tmp_path: Path) -> None:
    export = NsysBuilder()
    replay = export.graph_launch(0)
    export.kernel("node", 10, 5, correlation=replay, graph_node=77)
    export.kernel("node", 20, 5, correlation=replay, graph_node=78)
    found = read(export, tmp_path)
    check = check_replays(found.trace, ops_of(found.trace, 0))
    assert (check.launches, check.uncovered, check.graph_ops) == (1, 0, 2)
    assert found.capture.cuda_graphs == NODE_MODE


def test_a_replay_without_any_row_is_a_blind_spot(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.launch("eager", call_ns=0, start_ns=10, dur_ns=10)
    export.graph_launch(30)
    trace = read(export, tmp_path).trace
    assert check_replays(trace, ops_of(trace, 0)).uncovered == 1


def test_correlation_ids_count_within_a_process(tmp_path: Path) -> None:
    export = NsysBuilder()
    for pid in (11, 12):
        export.call("cudaLaunchKernel_v7000", 100 * pid, correlation=5, pid=pid)
        export.kernel(f"of_{pid}", 100 * pid + 50, 10, correlation=5, pid=pid, device=pid - 11)
    trace = read(export, tmp_path).trace
    launched = launched_by(trace, trace.device_ops)
    assert launched.start_ns.tolist() == [1_100, 1_200]
    assert [trace.tracks[t].pid for t in launched.track_id] == ["11", "12"]


def test_work_launched_before_the_recording_is_told_process_by_process(tmp_path: Path) -> None:
    export = NsysBuilder()
    for pid in (11, 12):
        for number in range(3):
            export.call("cudaLaunchKernel_v7000", 100 + number, correlation=50 + number, pid=pid)
            export.kernel("recorded", 200 + number, 1, correlation=50 + number, pid=pid)
        export.kernel("early", 10, 5, correlation=40, pid=pid)
        export.kernel("late", 20, 5, correlation=60, pid=pid)
    export.kernel("of a process without calls", 30, 5, correlation=40, pid=13)
    trace = read(export, tmp_path).trace
    before = launched_by(trace, trace.device_ops).before_recording
    assert {names_of(trace)[i] for i in np.flatnonzero(before)} == {"early"}
    assert int(before.sum()) == 2


def test_devices_are_physical_gpus_where_the_export_maps_them(tmp_path: Path) -> None:
    export = NsysBuilder()
    for pid, gpu in ((11, 3), (12, 2), (13, 3)):
        export.kernel("k", pid * 100, 10, pid=pid)
        export.cuda_device(pid, 0, gpu)
    export.gpu(2, "NVIDIA L40S")
    export.gpu(3, "NVIDIA H100")
    found = read(export, tmp_path)
    assert found.trace.device_ops.device.tolist() == [3, 2, 3]
    assert found.trace.meta.device_names == {2: "NVIDIA L40S", 3: "NVIDIA H100"}
    assert [(d.pid, d.ordinal, d.gpu, d.operations) for d in found.devices] == [
        (11, 0, 3, 1),
        (12, 0, 2, 1),
        (13, 0, 3, 1),
    ]


def test_without_a_map_processes_that_share_an_ordinal_are_kept_apart(tmp_path: Path) -> None:
    export = NsysBuilder(mapped=False)
    for pid in (11, 12):
        export.kernel("k", pid * 100, 10, pid=pid)
    found = read(export, tmp_path)
    assert found.trace.device_ops.device.tolist() == [0, 1]
    assert [(d.device, d.pid, d.gpu) for d in found.devices] == [(0, 11, None), (1, 12, None)]


def test_without_a_map_distinct_ordinals_stay_as_they_are(tmp_path: Path) -> None:
    export = NsysBuilder(mapped=False)
    export.kernel("k", 100, 10, pid=11, device=5)
    export.kernel("k", 200, 10, pid=12, device=2)
    assert read(export, tmp_path).trace.device_ops.device.tolist() == [5, 2]


def test_a_gpu_that_cannot_be_told_bears_the_name_that_all_share_or_none(tmp_path: Path) -> None:
    for names, expected in ((["T4", "T4"], {0: "T4"}), (["T4", "A100"], {})):
        export = NsysBuilder(mapped=False)
        export.kernel("k", 100, 10)
        for number, name in enumerate([*names, "Microsoft Basic Render Driver"]):
            export.gpu(number, name)
        assert read(export, tmp_path).trace.meta.device_names == expected


def test_ranges_come_from_text_or_id_and_marks_are_none(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.range("push", 0, 100)
    export.range("registered", 10, 90, registered=True)
    export.range("start/end", 20, 80, kind=START_END)
    export.range("a mark", 30, None, kind=MARK)
    export.range("a domain", -5, None, kind=DOMAIN)
    assert host_names(read(export, tmp_path).trace, "user_annotation") == ["push", "registered", "start/end"]


def test_a_range_that_never_ended_ends_with_the_recording(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.range("open", 10, None)
    export.kernel("k", 20, 30)
    export.duration(400)
    trace = read(export, tmp_path).trace
    assert trace.host.end_ns.tolist() == [400]


def test_operators_of_emit_nvtx_are_operators_under_their_plain_name(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.range("aten::mm, op_id = 17", 0, 10, registered=True)
    export.range("aten::mm, seq = 3, op_id = 18, sizes = [[2, 2], []]", 20, 30)
    export.range("a, b = c", 40, 50)
    trace = read(export, tmp_path).trace
    assert host_names(trace, "cpu_op") == ["aten::mm", "aten::mm"]
    assert host_names(trace, "user_annotation") == ["a, b = c"]


def test_threads_and_processes_have_the_names_that_the_export_knows(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.call("cudaMalloc_v3020", 5, pid=11, tid=12)
    tid = export.tables[PREFIX + "RUNTIME"][0]["globalTid"]
    export.row("ThreadNames", nameId=export.string("worker"), globalTid=tid)
    export.row("PROCESSES", globalPid=tid & ~0xFFFFFF, pid=11, name="python3")
    (track,) = read(export, tmp_path).trace.tracks
    assert (track.pid, track.tid, track.process_name, track.thread_name) == ("11", "12", "python3", "worker")


def test_the_wall_clock_is_that_of_the_session_start(tmp_path: Path) -> None:
    assert read(NsysBuilder(), tmp_path).trace.meta.base_time_ns == STARTED_NS


def test_a_shifted_or_normalised_export_keeps_its_wall_clock(tmp_path: Path) -> None:
    for option, value, expected in (
        ("EXPORT_PARAM_TIME_SHIFT", "1000", STARTED_NS - 1_000),
        ("EXPORT_PARAM_TIME_NORMALIZE", "true", 0),
    ):
        export = NsysBuilder()
        export.export_option(option, value)
        assert read(export, tmp_path).trace.meta.base_time_ns == expected


def test_the_recorded_window_is_the_stated_duration_unless_the_export_was_cut(tmp_path: Path) -> None:
    for duration_ns, expected in ((9_000, (0, 9_000)), (11_000, (500, 1_500)), (None, (500, 1_500))):
        export = NsysBuilder()
        export.kernel("a", 500, 10)
        export.kernel("b", 1_400, 100)
        if duration_ns is not None:
            export.duration(duration_ns)
        assert read(export, tmp_path).trace.recorded_ns == expected


def test_records_without_a_time_are_counted_and_backward_ones_are_lost(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.kernel("good", 10, 5)
    export.kernel("no time", 0, 0)
    export.kernel("backwards", 30, -5)
    export.row(PREFIX + "KERNEL", start=None, end=40, deviceId=0)
    trace = read(export, tmp_path).trace
    assert names_of(trace) == ["good"]
    assert trace.zero_timestamps == {0: 1}
    assert [(loss.lost_events, loss.may_hide_device_work) for loss in trace.losses] == [(1, True), (1, True)]


def test_capture_options_say_whether_and_how_cuda_was_traced(tmp_path: Path) -> None:
    for options, traced, mode in (
        ({"PROCESS_0:COLLECT_CUDA_TRACE": "false"}, False, ""),
        ({"PROCESS_0:COLLECT_CUDA_TRACE": "false", "CUDA_TRACE_SCOPE": "ProcessTree"}, True, ""),
        (
            {"PROCESS_3:COLLECT_CUDA_TRACE": "true", "PROCESS_3:CUDA_GRAPH_TRACE_OPTIONS:MODE": "Node"},
            True,
            "node",
        ),
        ({"CUDA_GRAPH_TRACE_OPTIONS:MODE": "Graph"}, None, "graph"),
        ({}, None, ""),
    ):
        export = NsysBuilder()
        export.os_call("poll", 0, 10)
        for name, value in options.items():
            export.option(name, value)
        capture = read(export, tmp_path).capture
        assert (capture.cuda_traced, capture.cuda_graphs) == (traced, mode), options


def test_messages_of_nsys_become_troubles_in_perfkits_words(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.message("Not all CUDA events might have been collected.")
    export.message(
        "Number of CUPTI events produced: \t9, CUPTI buffers: 1 of 2. Some CUPTI events might be missing."
    )
    export.message("Profiling has started.")
    assert read(export, tmp_path).capture.troubles == (Trouble.SOME_CUDA, Trouble.CUPTI_LOST)


def test_messages_about_processes_without_cuda_count_where_there_is_no_other(tmp_path: Path) -> None:
    """A shell that starts the service collected no CUDA events, and need not."""
    found = []
    for with_cuda in (True, False):
        export = NsysBuilder()
        export.message("No CUDA events collected. Does the process use CUDA?", pid=77)
        export.message("Insufficient privilege, see ERR_NVGPUCTRPERM.", pid=0)
        export.os_call("poll", 0, 10)
        if with_cuda:
            export.kernel("k", 10, 5, pid=11)
        found.append(read(export, tmp_path).capture.troubles)
    assert found == [(Trouble.COUNTER_RIGHTS,), (Trouble.NO_CUDA, Trouble.COUNTER_RIGHTS)]


def test_ratios_alone_need_only_graph_launches_and_step_marks(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.launch("k", call_ns=0, start_ns=10, dur_ns=5)
    export.graph_launch(30, start_ns=40, dur_ns=5)
    export.range("ProfilerStep#3", 0, 50)
    export.range("other", 0, 50)
    export.os_call("poll", 0, 10)
    found = read(export, tmp_path, busy_only=True)
    trace = found.trace
    assert sorted(trace.names[i] for i in trace.host.name_id) == ["ProfilerStep#3", "cudaGraphLaunch"]
    assert (len(trace.device_ops), len(found.os_calls), trace.busy_only) == (2, 0, True)


def test_system_calls_are_kept_of_threads_that_call_cuda(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.call("cudaMalloc_v3020", 5)
    export.os_call("poll", 10, 20)
    export.os_call("poll", 10, 20, tid=99)
    export.os_call("[Unknown]", 15, 0)
    found = read(export, tmp_path)
    assert [found.trace.names[i] for i in found.os_calls.name_id] == ["poll"]


def test_an_unknown_table_that_names_a_device_and_times_is_said_to_be_there(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.row(PREFIX + "DECOMPRESS", start=1, end=2, deviceId=0)
    export.row(PREFIX + "SYNCHRONIZATION", start=1, end=2, deviceId=0)
    inventory = read(export, tmp_path).trace.inventory
    assert [(row.category, row.role) for row in inventory] == [
        (PREFIX + "DECOMPRESS", "unknown, device-like")
    ]


def test_exports_that_do_not_name_processes_are_read_as_one(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.launch("k", call_ns=0, start_ns=10, dur_ns=5)
    export.memset(20, 5)
    export.range("around", 0, 90)
    export.without(PREFIX + "KERNEL", "globalPid")
    trace = read(export, tmp_path).trace
    assert launched_by(trace, trace.device_ops).known.tolist() == [True, False]
    assert trace.device_ops.device.tolist() == [0, 0]
    assert len(trace.tracks) == 1
