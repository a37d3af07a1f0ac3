"""Files that were cut: as they are, or closed again, so that operators lack their launches."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.lost_launches import ENOUGH_OPERATORS
from layers.layer1_gpu_busy.thresholds import Thresholds
from tests.layer1_traces import analysed, analysed_file, checks, steady
from tests.writers.chrome import TraceBuilder

STEP_NS = 1_000_000
OPERATORS = 20


def in_steps(launches: list[int], operators: list[int]) -> TraceBuilder:
    """One ProfilerStep a number: so many kernels that were launched in it, so many operators on the host."""
    trace = TraceBuilder()
    for number, (kernels, names) in enumerate(zip(launches, operators, strict=True)):
        at_ns = 1_000_000 + number * STEP_NS
        trace.annotation(f"ProfilerStep#{number}", at_ns, STEP_NS)
        for i in range(names):
            trace.cpu_op(f"aten::op_{i % 5}", at_ns + i * 40_000, 30_000)
        for i in range(kernels):
            call_ns = at_ns + i * 4_000
            trace.launch("gemm", call_ns=call_ns, call_dur_ns=500, start_ns=call_ns + 1_000, dur_ns=2_000)
    return trace


def test_steps_with_operators_and_no_launch_are_a_torn_file(tmp_path: Path) -> None:
    trace = analysed(in_steps([200, 0, 0], [OPERATORS] * 3), tmp_path)
    found = checks(trace)["PK196"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    assert found.message == (
        "40 operators like the 20 that launch have no launch, in 1 stretch from which calls are missing: a "
        "torn file"
    )
    assert checks(trace)["PK105"].message == "1 of 3 steps with device work, 200 operations"
    step = judge_traces([trace], Thresholds()).verdict.next_step
    assert step.startswith("first compare size and checksum of the file with the original, or record again")
    assert "PK196" in step.partition(". Then ")[0]


@pytest.mark.parametrize(
    ("launches", "operators"),
    [
        pytest.param([200, 200, 200], [OPERATORS] * 3, id="every step launches"),
        pytest.param([200, 200, 0], [OPERATORS, OPERATORS, ENOUGH_OPERATORS - 1], id="a little work"),
        pytest.param([0, 200, 200], [OPERATORS] * 3, id="work on the host before the first call"),
    ],
)
def test_steps_that_did_less_are_none(launches: list[int], operators: list[int], tmp_path: Path) -> None:
    found = checks(analysed(in_steps(launches, operators), tmp_path))["PK196"]
    assert not found.fired and found.message.endswith("no stretch of them lacks its launches")


def test_a_whole_file_without_runtime_calls_whose_device_lags_behind_is_not_torn(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(30):
        at_ns = 1_000_000 + number * STEP_NS
        trace.annotation(f"ProfilerStep#{number}", at_ns, STEP_NS)
        for i in range(OPERATORS):
            trace.cpu_op(f"aten::op_{i % 5}", at_ns + i * 40_000, 30_000)
        trace.kernel("gemm", at_ns + 27 * STEP_NS // 10, STEP_NS)
    assert "PK196" not in checks(analysed(trace, tmp_path))


def of_events(events: list[dict[str, Any]], gone: set[int]) -> list[dict[str, Any]]:
    """The events without the launches of these ids and without what they launched."""
    lost = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "Kernel", "Memcpy", "Memset", "Runtime")
    return [
        event
        for event in events
        if event.get("cat") not in lost or event.get("args", {}).get("correlation") not in gone
    ]


@pytest.mark.parametrize(("share", "torn"), [(0.0, False), (0.2, True), (0.4, True)])
@pytest.mark.parametrize("name", ["ranks/dlrm_worker1.json.gz", "h100_qwen1.5_0.5b.json.gz"])
def test_launches_and_operations_cut_out_of_the_middle_of_a_real_trace(
    name: str, share: float, torn: bool, data_dir: Path, tmp_path: Path
) -> None:
    whole = json.loads(gzip.decompress((data_dir / "traces" / name).read_bytes()))
    events = whole["traceEvents"]
    operations = [e["args"] for e in events if e.get("cat", "").lower() in ("kernel", "gpu_memcpy")]
    launched = sorted({args["correlation"] for args in operations})
    first, last = (int((0.5 + side * share / 2) * len(launched)) for side in (-1, 1))
    path = tmp_path / "torn.json"
    whole["traceEvents"] = of_events(events, set(launched[first:last]))
    path.write_text(json.dumps(whole))
    assert checks(analysed_file(path))["PK196"].fired is torn


def test_a_cut_gzip_file_is_said_once_with_a_place_in_its_unpacked_text(tmp_path: Path) -> None:
    whole = steady(operations=2_000).write(tmp_path / "whole.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    found = judge_traces([analysed_file(path)], Thresholds())
    assert re.fullmatch(
        r"the gzip file ends before its end: it was cut at byte [\d,]+ of the unpacked text: [\d,]+ device "
        r"operations read, and nobody knows how many are missing",
        found.verdict.because,
    )
    assert found.verdict.next_step == "copy or record the file again (perfkit explain PK106)"
