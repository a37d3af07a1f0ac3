"""Kernel groups, copies, symptoms, ranks and comparison on public traces."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.analyse import analyse_device
from layers.layer1_gpu_busy.busy import ops_of
from layers.layer1_gpu_busy.compare import Side, compare_traces
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.kernel_groups import GROUPS, KernelGroup, group_codes
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.ranks import RankTable, rank_table, rank_trace
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceOps, DeviceTrace

pytestmark = pytest.mark.real_data

MOST_UNKNOWN_SHARE = 0.02
"""The worst of these files leaves 1.7 % of its device time in names that no pattern knows."""

ONE_DEVICE_FILES = (
    "alexnet_idle.json.gz",
    "batch2_forward.json",
    "batch512_forward.json",
    "graph_launches_70_rank0.json.gz",
    "h100_bert_small_hostbound.json.gz",
    "h100_owlv2_large.json.gz",
    "h100_qwen1.5_0.5b.json.gz",
    "large_integer_rank70.json.gz",
    "mi250_rocm.json.gz",
    "mi300_qwen1.5_0.5b.json.gz",
    "multistream_overlap_rank3.json.gz",
    "ns_resolution_rank0.json.gz",
    "resnet50_workers0.json.gz",
    "resnet50_workers4.json.gz",
    "sglang_qwen3_8b_prefilldecode.json.gz",
    "vllm_decode_graph_mi300.json.gz",
    "ranks/dlrm_worker0.json.gz",
    "ranks/sampled_rank-0.json.gz",
)


@cache
def analysed(path: Path) -> tuple[DeviceTrace, DeviceOps, DeviceAnalysis]:
    """The one device of a trace, analysed."""
    trace = read_chrome_trace(str(path), workers=0)
    ops = ops_of(trace, int(trace.device_ops.device[0]))
    return trace, ops, analyse_device(trace, ops)


def symptom(path: Path, code: str) -> Symptom:
    return next(s for s in analysed(path)[2].symptoms if s.code == code)


@pytest.mark.parametrize("name", ONE_DEVICE_FILES)
def test_nearly_all_device_time_has_a_known_group(data_dir: Path, name: str) -> None:
    trace, ops, _ = analysed(data_dir / "traces" / name)
    length = ops.end_ns - ops.start_ns
    unknown = group_codes(trace, ops) == GROUPS.index(KernelGroup.OTHER)
    assert length[unknown].sum() <= MOST_UNKNOWN_SHARE * length.sum()


@pytest.mark.parametrize("name", ONE_DEVICE_FILES)
def test_every_symptom_answers_with_numbers(data_dir: Path, name: str) -> None:
    symptoms = analysed(data_dir / "traces" / name)[2].symptoms
    assert len(symptoms) == 14
    assert all(s.numbers for s in symptoms)


@pytest.mark.parametrize(
    ("name", "code", "present"),
    [
        ("h100_bert_small_hostbound.json.gz", "S1", True),
        ("batch2_forward.json", "S1", True),
        ("h100_qwen1.5_0.5b.json.gz", "S1", False),
        ("resnet50_workers0.json.gz", "S2", True),
        ("resnet50_workers4.json.gz", "S2", False),
        ("h100_owlv2_large.json.gz", "S3", True),
        ("h100_owlv2_large.json.gz", "S8", True),
        ("h100_qwen1.5_0.5b.json.gz", "S8", False),
        ("graph_launches_70_rank0.json.gz", "S6", True),
        ("multistream_overlap_rank3.json.gz", "S5", False),
        ("ns_resolution_rank0.json.gz", "S10", None),
        ("resnet50_workers0.json.gz", "S9", False),
        ("alexnet_idle.json.gz", "S9", None),
    ],
)
def test_symptoms_of_public_traces(data_dir: Path, name: str, code: str, present: bool | None) -> None:
    assert symptom(data_dir / "traces" / name, code).present is present


def test_the_slow_product_of_a_misaligned_sequence_is_named(data_dir: Path) -> None:
    numbers = symptom(data_dir / "traces" / "h100_owlv2_large.json.gz", "S8").numbers
    assert "16x[5185x64 by 64x5185] bf16, median 1.08 ms" in numbers


def test_copies_show_their_direction_and_memory(data_dir: Path) -> None:
    copies = {
        row.direction: row for row in analysed(data_dir / "traces" / "h100_owlv2_large.json.gz")[2].copies
    }
    assert (copies["DtoH pageable"].n, copies["DtoH pageable"].nbytes) == (55, 146_418_600)
    assert copies["HtoD pageable"].n == 25


def ranks_of(data_dir: Path, pattern: str) -> RankTable:
    traces = [
        read_chrome_trace(str(p), workers=0) for p in sorted((data_dir / "traces" / "ranks").glob(pattern))
    ]
    parts = [(trace, ops_of(trace, int(trace.device_ops.device[0]))) for trace in traces]
    return rank_table([rank_trace(trace, ops, analyse_device(trace, ops).busy) for trace, ops in parts])


def test_eight_ranks_whose_waiting_is_one_late_start_have_a_suspect_and_no_straggler(data_dir: Path) -> None:
    table = ranks_of(data_dir, "dlrm_*")
    assert (len(table.rows), table.missing, table.collectives) == (8, 0, 8)
    assert table.min_ratio == pytest.approx(0.24245, abs=1e-5)
    assert table.max_ratio == pytest.approx(0.65716, abs=1e-5)
    assert table.suspect is not None and table.straggler is None
    assert (table.suspect.rank, table.suspect.last_arrivals) == (7, 5)
    assert "44.7 % without the longest one" in table.because


def test_two_of_128_ranks_are_called_a_part(data_dir: Path) -> None:
    table = ranks_of(data_dir, "sampled_*")
    assert (table.world_size, table.missing) == (128, 126)
    assert table.straggler is None


def test_more_loader_workers_show_as_host_work_gone_from_the_gaps(data_dir: Path) -> None:
    sides = [
        Side(label, *analysed(data_dir / "traces" / name))
        for label, name in (
            ("0 workers", "resnet50_workers0.json.gz"),
            ("4 workers", "resnet50_workers4.json.gz"),
        )
    ]
    compared = compare_traces(*sides)
    assert (compared.unit, compared.a.units, compared.b.units) == ("step", 6, 6)
    assert compared.idle[0].cause is Cause.HOST_WORK
    assert compared.idle[0].a_share > 0.15 > 0.01 > compared.idle[0].b_share
    assert np.isclose(compared.a.busy_ns, compared.b.busy_ns, rtol=0.02)
