"""Files that were cut: as they are, or closed again, so that steps have operators and no launches."""

import re
from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.step_launches import SOME_OPERATORS
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
    assert found.message.startswith("2 of 3 steps have their host operators, and not one launch")
    assert checks(trace)["PK105"].message == "1 of 3 steps with device work, 200 operations"
    step = judge_traces([trace], Thresholds()).verdict.next_step
    assert step.startswith("first compare size and checksum of the file with the original, or record again")
    assert "PK196" in step.partition(". Then ")[0]


@pytest.mark.parametrize(
    ("launches", "operators"),
    [
        pytest.param([200, 200, 200], [OPERATORS] * 3, id="every step launches"),
        pytest.param(
            [200, 1, 0], [OPERATORS, OPERATORS, OPERATORS // 2 - 1], id="a step that computed little"
        ),
        pytest.param([200, 0], [1, SOME_OPERATORS - 1], id="too few operators to tell"),
    ],
)
def test_steps_that_did_less_are_none(launches: list[int], operators: list[int], tmp_path: Path) -> None:
    assert not checks(analysed(in_steps(launches, operators), tmp_path))["PK196"].fired


def test_a_whole_file_without_runtime_calls_whose_device_lags_behind_is_not_torn(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(30):
        at_ns = 1_000_000 + number * STEP_NS
        trace.annotation(f"ProfilerStep#{number}", at_ns, STEP_NS)
        for i in range(OPERATORS):
            trace.cpu_op(f"aten::op_{i % 5}", at_ns + i * 40_000, 30_000)
        trace.kernel("gemm", at_ns + 27 * STEP_NS // 10, STEP_NS)
    assert not checks(analysed(trace, tmp_path))["PK196"].fired


def test_steps_before_the_first_with_device_work_are_no_sign(tmp_path: Path) -> None:
    assert not checks(analysed(in_steps([0, 200, 200], [OPERATORS] * 3), tmp_path))["PK196"].fired


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
