"""The verdict and the guards of every public trace that lies beside the repository, each with its reason.

The reasons come from looking at each file: its category counts, its longest gaps, the calls around them, and
what its origin says it is. No case says more than its file shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from layers.evidence.result import Result
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.collect import collect_traces, find_trace_files
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.runtime_calls import Purpose, runtime_calls
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import I64, Bools, DeviceTrace

pytestmark = pytest.mark.real_data


@dataclass(frozen=True, slots=True)
class Case:
    """One file: the headline and the guards that are right for it, and why."""

    name: str
    headline: str
    fired: str
    because: str


CASES = (
    Case(
        "alexnet_idle.json.gz",
        "HOST-BOUND?",
        "PK105 PK108 PK109",
        "98 operations in 12.9 s: 10 s of cudaFree under the first convolution, and a pageable copy of 35 "
        "ms that is half of all busy time. First use is measured here, not a service.",
    ),
    Case(
        "ascend_trace_view.json",
        "VOID",
        "PK104",
        "A Huawei NPU. It did work, in lanes that perfkit does not read, so there is no ratio of 0 %.",
    ),
    Case(
        "batch2_forward.json",
        "HOST-BOUND",
        "",
        "One eager forward pass at batch 2: 575 operations, each waiting for its launch; no graph, no hole.",
    ),
    Case(
        "batch512_forward.json",
        "HOST-BOUND?",
        "PK109",
        "The same at batch 512, with 630 ms in one launch call, of the first convolution: 62 % of the "
        "window.",
    ),
    Case(
        "cpu_only_rank34.json.gz",
        "VOID",
        "PK104 PK131",
        "Rank 34 of 300, and only host events: whether the device was busy cannot be known.",
    ),
    Case(
        "graph_launches_70_rank0.json.gz",
        "HOST-BOUND?",
        "PK117 PK131",
        "35.6 % busy, yet 99 % of the idle time passes with hundreds of operations queued, in pauses of 64 "
        "ms: whatever the device waits for, it is not its host. All 70 replays are recorded.",
    ),
    Case(
        "h100_bert_small_hostbound.json.gz",
        "HOST-BOUND?",
        "PK105 PK129",
        "One step of 61 operations of a small model: plainly launch-bound, and too little to conclude.",
    ),
    Case(
        "h100_owlv2_large.json.gz",
        "HOST-BOUND",
        "PK129",
        "5,165 operations, and pauses of 120 ms between a copy out and a copy in, while the host zooms "
        "images.",
    ),
    Case(
        "h100_qwen1.5_0.5b.json.gz",
        "DEVICE-BOUND",
        "PK116",
        "A prefill of large products, 44 operations queued in the median: the host is far ahead.",
    ),
    Case(
        "large_integer_rank70.json.gz",
        "DEVICE-BOUND?",
        "PK105 PK113 PK114 PK116 PK128",
        "One collective of 50 µs and nothing else, cut out of a file to show a large integer.",
    ),
    Case(
        "mi250_rocm.json.gz",
        "HOST-BOUND?",
        "PK105 PK109",
        "A toy training loop: 16 operations, and 6.6 ms in the launch call of the first addition.",
    ),
    Case(
        "mi300_qwen1.5_0.5b.json.gz",
        "DEVICE-BOUND",
        "PK116",
        "The H100 prefill on an MI300.",
    ),
    Case(
        "mtia_inference_rank0.json.gz",
        "VOID",
        "PK104",
        "Meta's accelerator, whose one device lane mixes work with waiting.",
    ),
    Case(
        "multistream_overlap_rank3.json.gz",
        "UNDECIDED",
        "PK131",
        "83.6 % by the union of four streams, though the durations sum up to 108 % of the window.",
    ),
    Case(
        "ns_resolution_rank0.json.gz",
        "DEVICE-BOUND",
        "PK116",
        "A training run of five steps, 98.4 % busy and 97.4 % of its steps; the one rank of its run.",
    ),
    Case(
        "odd_json_with_comments.json",
        "VOID",
        "PK104 PK106",
        "A test of a comma too many: five slices of processes and no profiler at all. It cost nothing to "
        "repair.",
    ),
    Case(
        "resnet50_workers0.json.gz",
        "UNDECIDED",
        "",
        "A training loop that waits for its data loader between steps, and else keeps the device busy.",
    ),
    Case(
        "resnet50_workers4.json.gz",
        "UNDECIDED",
        "PK192",
        "The same with four loaders: 89.7 %, below 90 % by a hair, and 87.0 % of the steps.",
    ),
    Case(
        "sglang_graph_capture_bs32.json.gz",
        "VOID",
        "PK105 PK108 PK110 PK112 PK116 PK128",
        "The capture of a decode graph: 544 launches go into the graph and 2 kernels run. That those fill "
        "99.99 % of their own 11 µs means nothing.",
    ),
    Case(
        "sglang_qwen3_8b_prefilldecode.json.gz",
        "HOST-BOUND?",
        "PK109 PK117 PK129",
        "A prefill of 15,360 tokens, then one pause of 493 ms before a kernel that had long been launched.",
    ),
    Case(
        "vllm_decode_graph_mi300.json.gz",
        "DEVICE-BOUND?",
        "PK116 PK128",
        "One decode step: a replay of 421 nodes, all recorded under its launch, and 13 operations around it; "
        "of all that was recorded they fill 56.1 %.",
    ),
    Case(
        "ranks/sampled_rank-0.json.gz",
        "HOST-BOUND?",
        "PK113 PK117 PK131",
        "Rank 0 of 128: 72 % of busy time is communication, and most idle time passes with work queued.",
    ),
    Case(
        "ranks/sampled_rank-1.json.gz",
        "HOST-BOUND?",
        "PK113 PK117 PK131",
        "Rank 1 of the same run, alike.",
    ),
)


def dlrm_case(rank: int, headline: str, fired: str) -> Case:
    because = "Recommendation training, one step: busy time is mostly one or two collectives that wait."
    return Case(f"ranks/dlrm_worker{rank}.json.gz", headline, fired, because)


DLRM_CASES = tuple(
    dlrm_case(rank, headline, fired)
    for rank, headline, fired in (
        (0, "HOST-BOUND", "PK113 PK131"),
        (1, "UNDECIDED", "PK108 PK113 PK131"),
        (2, "HOST-BOUND", "PK113 PK131"),
        (3, "HOST-BOUND?", "PK108 PK113 PK131"),
        (4, "HOST-BOUND?", "PK108 PK113 PK131"),
        (5, "HOST-BOUND?", "PK108 PK113 PK131"),
        (6, "HOST-BOUND", "PK113 PK131"),
        (7, "HOST-BOUND", "PK113 PK131"),
    )
)

EXIT_CODES = {"HOST-BOUND": 0, "DEVICE-BOUND": 0, "UNDECIDED": 3, "VOID": 4}


def judge(*paths: Path) -> Result:
    collected = collect_traces([str(path) for path in paths])
    return judge_traces(collected.traces, Thresholds(), collected.unread)


def fired(result: Result) -> str:
    return " ".join(sorted({guard.code for guard in result.guards if guard.fired}))


@pytest.mark.parametrize("case", [*CASES, *DLRM_CASES], ids=lambda case: case.name)
def test_each_public_trace_gets_the_verdict_and_the_guards_that_are_right_for_it(
    case: Case, data_dir: Path
) -> None:
    result = judge(data_dir / "traces" / case.name)
    assert (result.verdict.headline, fired(result)) == (case.headline, case.fired), case.because
    assert result.verdict.exit_code == EXIT_CODES.get(case.headline, 3)
    assert bool(result.findings) == (case.headline != "VOID")


def test_every_trace_beside_the_repository_has_a_case(data_dir: Path) -> None:
    folder = data_dir / "traces"
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == {case.name for case in (*CASES, *DLRM_CASES)}


# Replays: what the guard says of real ones, and of the same files with replays taken out


@lru_cache(maxsize=2)
def read(path: Path) -> DeviceTrace:
    return read_chrome_trace(str(path), workers=0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("graph_launches_70_rank0.json.gz", "70 graph launches, 345 operations under them"),
        ("vllm_decode_graph_mi300.json.gz", "1 graph launch, 421 operations under them"),
        ("sglang_graph_capture_bs32.json.gz", "0 graph launches, 0 operations under them"),
    ],
)
def test_recorded_replays_are_counted_and_clear(name: str, message: str, data_dir: Path) -> None:
    result = judge(data_dir / "traces" / name)
    guards = {guard.code: guard for guard in result.guards}
    assert (guards["PK101"].fired, guards["PK101"].message) == (False, message)
    assert "PK102" not in guards or not guards["PK102"].fired


def without(trace: DeviceTrace, hidden: Bools) -> Result:
    """The verdict on the trace when these operations were not recorded."""
    seen = replace(trace, device_ops=trace.device_ops.select(~hidden))
    return judge_traces([analyse_trace(seen)], Thresholds())


def graph_launches(trace: DeviceTrace) -> I64:
    """Correlation ids of the launches in time order."""
    calls = runtime_calls(trace)
    return calls.spans.correlation[calls.are(Purpose.GRAPH_LAUNCH)]


@pytest.mark.parametrize("name", ["graph_launches_70_rank0.json.gz", "vllm_decode_graph_mi300.json.gz"])
@pytest.mark.parametrize("every", [1, 2], ids=["all hidden", "half hidden"])
def test_a_trace_whose_replays_were_not_recorded_is_void_and_its_bounds_hold_the_true_ratio(
    every: int, name: str, data_dir: Path
) -> None:
    trace = read(data_dir / "traces" / name)
    launches = graph_launches(trace)[::every]
    result = without(trace, np.isin(trace.device_ops.correlation, launches))
    assert (result.verdict.word, result.verdict.exit_code, result.findings) == ("void", 4, [])
    blind = next(guard for guard in result.guards if guard.code == "PK101")
    assert blind.fired and f"{len(launches)} of " in blind.message
    true_ratio = analyse_trace(trace).devices[0].busy.device_window.device_op_ratio
    [device] = analyse_trace(
        replace(trace, device_ops=trace.device_ops.select(~np.isin(trace.device_ops.correlation, launches)))
    ).devices
    assert device.replays.low_ratio is not None and device.replays.high_ratio is not None
    assert true_ratio is not None
    assert device.replays.low_ratio <= true_ratio <= device.replays.high_ratio


@pytest.mark.parametrize("part", ["every other", "first half", "second half"])
def test_a_replay_that_lost_half_of_its_kernels_concludes_nothing(part: str, data_dir: Path) -> None:
    """With one replay there is none to compare with, but its gaps end with work launched long before."""
    trace = read(data_dir / "traces" / "vllm_decode_graph_mi300.json.gz")
    rows = np.flatnonzero(np.isin(trace.device_ops.correlation, graph_launches(trace)))
    half = len(rows) // 2
    lost = {"every other": rows[::2], "first half": rows[:half], "second half": rows[half:]}[part]
    result = without(trace, np.isin(np.arange(len(trace.device_ops)), lost))
    assert (result.verdict.headline, result.verdict.exit_code) == ("HOST-BOUND?", 3)
    assert "PK117" in fired(result)


# Several ranks at once


def test_eight_ranks_of_one_run_get_one_table_and_no_average(data_dir: Path) -> None:
    paths = find_trace_files([str(data_dir / "traces" / "ranks" / "dlrm*")])
    result = judge(*map(Path, paths))
    assert result.verdict.headline == "UNDECIDED"
    assert "24.2 % to 65.7 % over 8 devices" in result.verdict.because
    assert "7 host-bound, 1 undecided" in result.verdict.because
    [table] = result.sections["ranks"]
    assert [row["rank"] for row in table["rows"]] == list(range(8))
    assert (table["world_size"], table["missing"]) == (8, 0)
    by_rank = {d["rank"]: d["device_op_ratio"] for d in result.sections["devices"]}
    assert {row["rank"]: row["device_op_ratio"] for row in table["rows"]} == by_rank
    assert next(g for g in result.guards if g.code == "PK131").fired is False


def test_two_of_128_ranks_say_how_many_are_missing_and_name_no_straggler(data_dir: Path) -> None:
    paths = find_trace_files([str(data_dir / "traces" / "ranks" / "sampled*")])
    result = judge(*map(Path, paths))
    assert result.verdict.headline == "HOST-BOUND?"
    [table] = result.sections["ranks"]
    assert (table["missing"], table["straggler"], table["suspect"]["rank"]) == (126, None, 1)
    missing = next(g for g in result.guards if g.code == "PK131")
    assert (missing.fired, missing.message) == (True, "2 of the 128 ranks given")


def test_a_folder_with_two_runs_gets_a_table_for_each(data_dir: Path) -> None:
    result = judge(*map(Path, find_trace_files([str(data_dir / "traces" / "ranks")])))
    tables = [(t["name"], t["world_size"], t["missing"], len(t["rows"])) for t in result.sections["ranks"]]
    assert tables == [("run A", 8, 0, 8), ("run B", 128, 126, 2)]
    assert [t["suspect"]["rank"] for t in result.sections["ranks"]] == [7, 1]
    said = {(g.code, g.scope): (g.fired, g.message) for g in result.guards}
    assert said["PK131", "run A"] == (False, "8 of the 8 ranks given")
    assert said["PK131", "run B"] == (True, "2 of the 128 ranks given")
    assert said["PK133", ""][0] is True
    scopes = [d["scope"] for d in result.sections["devices"]]
    assert len(set(scopes)) == 10 and scopes[0] == "dlrm_worker0.json.gz, device 0"
