"""Whose file it is, which of its rows are device work, and what the inventory says of all others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parsers.chrome_categories import Producer, Role
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.trace_rows import busy_ns_by_device, device_rows, host_rows, inventory, roles
from tests.writers.chrome import LEGACY_CATEGORIES, TraceBuilder


def _event(name: str, ts: float, dur: float, pid: object = 1, tid: object = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def _named(kind: str, name: str, pid: object, tid: object = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _read(folder: Path, events: list[dict[str, Any]], **around: Any) -> DeviceTrace:
    path = folder / "t.json"
    path.write_text(json.dumps({**around, "traceEvents": events}))
    return read_chrome_trace(str(path))


# Kineto


def test_old_category_names_mean_the_same(tmp_path: Path) -> None:
    new, old = everything(), everything(categories=LEGACY_CATEGORIES)
    (tmp_path / "new").write_text(new.text())
    (tmp_path / "old").write_text(old.text())
    one, other = read_chrome_trace(str(tmp_path / "new")), read_chrome_trace(str(tmp_path / "old"))
    assert device_rows(one) == device_rows(other)
    assert one.gemms == other.gemms and one.collectives == other.collectives
    assert [row.correlation for row in host_rows(one)] == [row.correlation for row in host_rows(other)]
    assert one.meta.producer == other.meta.producer == Producer.CUDA


def test_waits_and_annotations_on_device_rows_are_no_device_work(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.kernel("k", 0, 5)
    trace.device_sync("Stream Sync", 0, 1_000_000)
    trace.gpu_user_annotation("phase", 0, 1_000_000)
    trace.complete("cuda_event", "cudaEvent", 7, 1, pid=0, tid=7, args={"stream": 7, "device": 0})
    trace.cpu_op("triton_kernel", 0, 900_000, args={"stream": 0})
    read = read_chrome_trace(str(trace.write(tmp_path / "t.json")))
    assert [row.name for row in device_rows(read)] == ["k"]
    assert roles(read)["gpu_user_annotation"] == roles(read)["cuda_sync"] == Role.DEVICE_SPAN


def test_a_kernel_without_stream_and_correlation_counts(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.kernel("gemm", 1_000, 5_000, stream=None, correlation=None, args={"sycl queue": 1})
    trace.complete("xpu_runtime", "urEnqueueKernelLaunch", 0, 500)
    read = read_chrome_trace(str(trace.write(tmp_path / "t.json")))
    assert [(row.stream, row.correlation) for row in device_rows(read)] == [(-1, -1)]
    assert read.meta.producer == Producer.XPU


def test_several_devices_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    trace = TraceBuilder(devices=3)
    for device in range(3):
        trace.kernel("k", 1_000, 1_000 * (device + 1), device=device)
    read = read_chrome_trace(str(trace.write(tmp_path / "t.json")))
    assert busy_ns_by_device(device_rows(read)) == {0: 1_000, 1: 2_000, 2: 3_000}
    assert len(read.meta.device_names) == 3


# Lanes that are known by their names


def _jax() -> list[dict[str, Any]]:
    lanes = [
        (1, "XLA Modules"),
        (2, "XLA Ops"),
        (3, "Steps"),
        (14, "Stream #14(Compute)"),
        (15, "Stream #15(Memcpy)"),
    ]
    names = [_named("process_name", f"/device:GPU:{gpu}", gpu + 1) for gpu in (0, 1)]
    names += [_named("thread_name", lane, gpu + 1, tid) for gpu in (0, 1) for tid, lane in lanes]
    work = []
    for gpu in (0, 1):
        work += [_event("jit_step", 0, 1_000, gpu + 1, tid) for tid in (1, 2, 3)]
        work += [_event("loop_fusion", 10, 5 + gpu, gpu + 1, 14), _event("MemcpyD2H", 12, 9, gpu + 1, 15)]
    host = [_named("process_name", "/host:CPU", 700), _event("PjRt", 0, 50, 700), {}]
    return [*names, *host, *work]


def test_of_a_jax_trace_the_stream_lanes_alone_are_device_work(tmp_path: Path) -> None:
    trace = _read(tmp_path, _jax())
    rows = [(r.device, r.stream, r.kind, r.name, r.start_ns, r.end_ns) for r in device_rows(trace)]
    assert sorted(rows) == [
        (0, 14, "kernel", "loop_fusion", 10_000, 15_000),
        (0, 15, "memcpy", "MemcpyD2H", 12_000, 21_000),
        (1, 14, "kernel", "loop_fusion", 10_000, 16_000),
        (1, 15, "memcpy", "MemcpyD2H", 12_000, 21_000),
    ]
    assert {row.name for row in host_rows(trace)} == {"jit_step", "PjRt"}
    assert trace.meta.producer == Producer.JAX
    assert [(r.events, r.role) for r in trace.inventory if "lane" in r.role] == [
        (4, "device work (by the name of its lane)")
    ]


def test_names_of_lanes_may_follow_their_events(tmp_path: Path) -> None:
    assert len(_read(tmp_path, _jax()[::-1]).device_ops) == 4


def test_lanes_are_found_when_only_the_busy_ratio_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(_jax()))
    assert len(read_chrome_trace(str(path), busy_only=True).device_ops) == 4


@pytest.mark.parametrize("process", ["/device:GPU:99999999999999999999", "/device:GPU:", "/device:TPU:0"])
def test_a_lane_without_a_usable_device_number_is_no_device_lane(tmp_path: Path, process: str) -> None:
    names = [_named("process_name", process, 1), _named("thread_name", "Stream #1", 1, 1)]
    trace = _read(tmp_path, [*names, _event("f", 1, 1)])
    assert len(trace.device_ops) == 0 and len(trace.host) == 1
    assert trace.meta.producer == Producer.JAX


def test_events_with_a_category_are_no_device_work_by_their_lane(tmp_path: Path) -> None:
    names = [_named("process_name", "/device:GPU:0", 1), _named("thread_name", "Stream #1", 1, 1)]
    assert len(_read(tmp_path, [*names, _event("f", 1, 1, cat="cpu_op")]).device_ops) == 0


# Other accelerators: recognised, never counted as device work


def test_an_ascend_trace_is_recognised_and_its_string_times_are_exact(tmp_path: Path) -> None:
    names = [_named("process_name", "Ascend Hardware", 7), _named("process_name", "Overlap Analysis", 8)]
    work = [_event("MatMul", 0, 3.5, 7), _event("Computing", 0, 3.5, 8)]
    for event in work:
        event["ts"] = "1712195495524107.555"
    trace = _read(tmp_path, [*names, *work])
    assert {row.start_ns for row in host_rows(trace)} == {1_712_195_495_524_107_555}
    assert len(trace.device_ops) == 0
    assert trace.meta.producer == Producer.ASCEND and trace.meta.nanosecond_resolution


def test_an_mtia_trace_is_recognised_and_its_device_events_are_named_as_such(tmp_path: Path) -> None:
    work = [
        _event("dma_request", 0, 5, cat="mtia_ccp_events", args={"device": 0}),
        _event("r", 0, 1, cat="mtia_runtime"),
    ]
    trace = _read(tmp_path, work)
    assert len(trace.device_ops) == 0
    assert roles(trace)["mtia_ccp_events"] == Role.OTHER_DEVICE
    assert trace.meta.producer == Producer.MTIA


def test_an_unknown_category_that_names_a_device_is_reported_as_device_like(tmp_path: Path) -> None:
    strange = [_event("op", ts, 1, cat="npu_kernel", args={"device": 0}) for ts in range(3)]
    trace = _read(tmp_path, [*strange, _event("x", 0, 1, cat="new_host_thing", args={})])
    assert roles(trace) == {"npu_kernel": Role.UNKNOWN_DEVICE, "new_host_thing": Role.UNKNOWN}
    assert inventory(trace) == {("npu_kernel", "X"): 3, ("new_host_thing", "X"): 1}
    assert len(trace.device_ops) == 0 and len(trace.host) == 4


@pytest.mark.parametrize(
    ("events", "around", "producer"),
    [
        ([_event("k", 0, 1, cat="kernel")], {}, Producer.CUDA),
        ([_event("k", 0, 1, cat="kernel")], {"hip_runtime_version": 60443483}, Producer.ROCM),
        ([_event("hipLaunchKernel", 0, 1, cat="cuda_runtime")], {}, Producer.ROCM),
        ([_event("hippo.py(3): forward", 0, 99, cat="python_function")], {}, Producer.CPU),
        ([_event("aten::mm", 0, 1, cat="cpu_op")], {}, Producer.CPU),
        ([_event("slice", 0, 1, cat="ipc")], {}, Producer.UNKNOWN),
        ([], {}, Producer.UNKNOWN),
    ],
)
def test_the_producer_is_told_by_categories_and_versions(
    tmp_path: Path, events: list[dict[str, Any]], around: dict[str, Any], producer: Producer
) -> None:
    assert _read(tmp_path, events, **around).meta.producer == producer


REAL_PRODUCERS = {
    "ascend_trace_view.json": Producer.ASCEND,
    "cpu_only_rank34.json.gz": Producer.CPU,
    "h100_bert_small_hostbound.json.gz": Producer.CUDA,
    "resnet50_workers0.json.gz": Producer.CUDA,
    "mi250_rocm.json.gz": Producer.ROCM,
    "vllm_decode_graph_mi300.json.gz": Producer.ROCM,
    "mtia_inference_rank0.json.gz": Producer.MTIA,
    "odd_json_with_comments.json": Producer.UNKNOWN,
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL_PRODUCERS)
def test_the_producers_of_real_files_are_recognised(data_dir: Path, name: str) -> None:
    assert read_chrome_trace(str(data_dir / "traces" / name)).meta.producer == REAL_PRODUCERS[name]
