"""With --busy-only nothing is firm where a whole reading is void or a hint; what was not checked is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers import chrome_trace
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    PERIOD_NS,
    analysed,
    analysed_file,
    checks,
    steady,
)
from tests.writers.chrome import TraceBuilder


def launches_that_left_nothing() -> TraceBuilder:
    """Half of the launches have no operation."""
    trace = steady(DEVICE_BOUND_NS)
    for number in range(200):
        trace.runtime_call("cudaLaunchKernel", FIRST_NS + number * PERIOD_NS + 5_000, 200)
    return trace


def idle_recording() -> TraceBuilder:
    """The host goes on for long after the device's last operation."""
    trace = steady(DEVICE_BOUND_NS)
    trace.cpu_op("aten::to", FIRST_NS + 200 * PERIOD_NS, 400 * PERIOD_NS)
    return trace


@pytest.mark.parametrize("make", [launches_that_left_nothing, idle_recording])
def test_a_device_bound_ratio_is_no_firmer_than_a_whole_reading(
    make: Callable[[], TraceBuilder], tmp_path: Path
) -> None:
    whole, ratios = (analysed(make(), tmp_path, busy_only=only) for only in (False, True))
    full, quick = (judge_traces([analysis], Thresholds()).verdict for analysis in (whole, ratios))
    assert full.exit_code in (Exit.INVALID, Exit.NO_CONCLUSION)
    assert (quick.word, quick.directional, quick.exit_code) == (Word.DEVICE_BOUND, True, Exit.NO_CONCLUSION)


def test_a_small_file_shows_how_much_was_recorded(tmp_path: Path) -> None:
    found = checks(analysed(idle_recording(), tmp_path, busy_only=True))
    assert found["PK128"].fired and "how much of the recording" not in found["PK134"].message


def test_a_part_of_the_events_does_not_pass_for_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_trace, "SPARSE_FROM_BYTES", 0)
    analysis = analysed(idle_recording(), tmp_path, busy_only=True)
    assert analysis.recorded_ns is None and "PK128" not in checks(analysis)
    assert "Not checked: launches without operations" in checks(analysis)["PK134"].message
    assert "how much of the recording has no device work" in checks(analysis)["PK134"].message


def test_the_profilers_own_span_is_the_recording_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_trace, "SPARSE_FROM_BYTES", 0)
    trace = idle_recording()
    trace.profiler_span(FIRST_NS, 600 * PERIOD_NS)
    assert checks(analysed(trace, tmp_path, busy_only=True))["PK128"].fired


@pytest.mark.real_data
def test_a_decode_trace_is_as_doubtful_by_its_ratios_alone(data_dir: Path) -> None:
    path = data_dir / "traces" / "vllm_decode_graph_mi300.json.gz"
    for busy_only in (False, True):
        analysis = analysed_file(path, busy_only=busy_only)
        verdict = judge_traces([analysis], Thresholds()).verdict
        assert (verdict.word, verdict.directional) == (Word.DEVICE_BOUND, True)
        assert checks(analysis)["PK128"].fired
