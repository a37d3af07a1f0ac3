"""The tables of every real file agree, to the integer, with a slow reader that shares no code with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layers.evidence.intervals import total, union
from parsers.chrome_trace import read_chrome_trace
from tests.trace_rows import busy_ns_by_device, device_rows, host_rows, inventory
from tests.trace_twin import text_of, twin_of_text

pytestmark = pytest.mark.real_data

FILES = (
    "alexnet_idle.json.gz",
    "ascend_trace_view.json",
    "batch2_forward.json",
    "batch512_forward.json",
    "cpu_only_rank34.json.gz",
    "graph_launches_70_rank0.json.gz",
    "h100_bert_small_hostbound.json.gz",
    "h100_owlv2_large.json.gz",
    "h100_qwen1.5_0.5b.json.gz",
    "large_integer_rank70.json.gz",
    "mi250_rocm.json.gz",
    "mi300_qwen1.5_0.5b.json.gz",
    "mtia_inference_rank0.json.gz",
    "multistream_overlap_rank3.json.gz",
    "ns_resolution_rank0.json.gz",
    *(f"ranks/dlrm_worker{rank}.json.gz" for rank in range(8)),
    "ranks/sampled_rank-0.json.gz",
    "ranks/sampled_rank-1.json.gz",
    "resnet50_workers0.json.gz",
    "resnet50_workers4.json.gz",
    "sglang_graph_capture_bs32.json.gz",
    "sglang_qwen3_8b_prefilldecode.json.gz",
    "vllm_decode_graph_mi300.json.gz",
)


@pytest.mark.parametrize("name", FILES)
def test_tables_equal_those_of_the_slow_reader(data_dir: Path, name: str) -> None:
    path = data_dir / "traces" / name
    trace, twin = read_chrome_trace(str(path), workers=0), twin_of_text(text_of(path))
    assert trace.losses == []
    assert sorted(device_rows(trace)) == twin.device
    assert sorted(host_rows(trace)) == twin.host
    assert inventory(trace) == twin.inventory
    assert trace.zero_timestamps == twin.zero_timestamps
    for device, busy_ns in busy_ns_by_device(twin.device).items():
        ops = trace.device_ops.select(trace.device_ops.device == device)
        assert total(union(ops.start_ns, ops.end_ns)) == busy_ns
    assert (np.diff(trace.device_ops.start_ns) >= 0).all() and (np.diff(trace.host.start_ns) >= 0).all()


def test_every_real_trace_is_among_them(data_dir: Path) -> None:
    folder = data_dir / "traces"
    there = {str(path.relative_to(folder)) for path in folder.rglob("*.json*")}
    assert there - set(FILES) == {"odd_json_with_comments.json"}


def test_trailing_commas_are_repaired_and_said(data_dir: Path) -> None:
    trace = read_chrome_trace(str(data_dir / "traces" / "odd_json_with_comments.json"))
    assert inventory(trace) == {("ipc", "X"): 5}
    assert [loss.what for loss in trace.losses] == [
        "events with broken text or fields of a wrong type: repaired"
    ]
    assert len(trace.host) == 5
