"""Two public sweeps, imported: what their authors and we found by hand is what perfkit says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from layers.collectors.named_files import files_directly_in, find_files
from layers.evidence.result import to_document
from layers.layer3_sweep.imported_files import read_for_import
from layers.layer3_sweep.imported_judge import ImportedSweep, judge_imported
from layers.layer3_sweep.named_points import find
from parsers.series_model import Metric

pytestmark = pytest.mark.real_data


def imported(*names: Path) -> ImportedSweep:
    read = read_for_import(find_files([str(name) for name in names], files_directly_in), [])
    return judge_imported(read.results, read.logs, unread=read.unread)


@pytest.fixture(scope="module")
def h100(data_dir: Path) -> ImportedSweep:
    return imported(data_dir / "loadgen" / "h100_sweep")


@pytest.fixture(scope="module")
def knee(data_dir: Path) -> ImportedSweep:
    return imported(data_dir / "sglang_omni" / "asr_knee_tables.json")


LOADS = [1, 2, 4, 8, 10, 16, 32, 64, 80, 128]


def test_the_sweep_of_eight_h100_is_a_plateau_of_a_limit_from_64_on(h100: ImportedSweep) -> None:
    curve = to_document(h100.result)["curve"]
    assert (curve["class"], curve["plateau_start"], curve["power_optimum"]) == ("plateau-limit", 64, 10)
    assert curve["asymptote"] == pytest.approx(8.1, abs=0.05)
    assert "TTFT p50 grows from 981 to 17,719 ms" in curve["because"]
    assert curve["linear_limit"] == 1 and curve["p99_inflection"] == 64


def test_its_elasticities_are_those_of_the_record(h100: ImportedSweep) -> None:
    assert h100.primary is not None
    steps = [(round(step.end), round(step.value, 2)) for step in h100.primary.elasticities]
    values = [0.79, 0.70, 0.53, 0.61, 0.40, 0.31, 0.23, 0.01, -0.00]
    assert steps == [(end, value) for end, value in zip(LOADS[1:], values, strict=True)]


def test_nvidia_smi_is_called_useless_there_and_why(h100: ImportedSweep) -> None:
    assert h100.primary is not None
    (util,) = [u for u in h100.primary.utilisation if u.metric == Metric.NVML_UTIL_PCT]
    assert util.trend == "useless" and "any resident kernel counts as busy" in util.because


def test_medians_of_utilisation_and_means_of_memory_utilisation(h100: ImportedSweep) -> None:
    by_load: dict[int, dict[str, Any]] = {}
    for swept in h100.imported.passes:
        assert swept.load.concurrency is not None and len(swept.devices) == 16
        memory = [d.mean for d in swept.devices if d.metric == Metric.MEMORY_UTIL_PCT]
        busy = [d.median for d in swept.devices if d.metric == Metric.NVML_UTIL_PCT]
        by_load[swept.load.concurrency] = {"busy": set(busy), "memory": round(sum(memory) / len(memory))}
    assert [by_load[n]["memory"] for n in LOADS] == [11, 14, 25, 32, 34, 38, 49, 46, 41, 42]
    assert all(by_load[n]["busy"] == {100.0} for n in LOADS)


def test_ramp_and_drain_are_in_the_points_of_few_requests_and_it_says_so(h100: ImportedSweep) -> None:
    short = {guard.scope for guard in h100.result.guards if guard.code == "PK332" and guard.fired}
    assert {scope.split()[0] for scope in short} == {"64", "80", "128"}


def test_the_knee_of_the_asr_tables_is_sheds_and_the_wait_for_admission(knee: ImportedSweep) -> None:
    verdict = knee.result.verdict
    assert verdict.word == "plateau-limit"
    for said in ("99 of 3,264", "5.9 to 412.8 ms", "45.4 %", "separate pass", "admission"):
        assert said in verdict.because
    assert knee.primary is not None and find(knee.primary.named, "plateau_start") is not None
    assert find(knee.primary.named, "plateau_start").concurrency == 32  # type: ignore[union-attr]


def test_the_ledger_of_a_loaded_host_is_in_no_point_of_the_quiet_table(knee: ImportedSweep) -> None:
    assert knee.primary is not None
    quiet = [swept for point in knee.primary.points for swept in point.passes]
    assert [swept.throughput_rps for swept in quiet] == [11.6, 27.5, 53.0, 108.0, 103.0]
    assert {swept.stage_ms for swept in quiet} == {None}
    (ledger,) = [c for c in knee.analysis.curves if c.settings["table"].startswith("5")]
    assert ledger.points[-1].throughput_rps == pytest.approx(70.3, abs=0.05)
    assert ledger.stages[0].stage == "queued→scheduled"
    assert ledger.stages[0].held_at_last == pytest.approx(29.0, abs=0.1)


def test_the_contended_row_of_the_control_breaks_littles_law_and_no_other_does(knee: ImportedSweep) -> None:
    ratios = {
        (swept.settings["table"][0], swept.arm, swept.load.concurrency): swept.littles_ratio
        for swept in knee.imported.passes
        if not swept.settings["table"].startswith("5")
    }
    broken = {key: ratio for key, ratio in ratios.items() if ratio is not None and not 0.95 <= ratio <= 1.1}
    assert list(broken) == [("3", "control", 1)]
    assert broken[("3", "control", 1)] == pytest.approx(1.3, abs=0.01)
