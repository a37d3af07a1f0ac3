"""Reports of real traces: sound, and with figures in which nothing is cut or overlaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.lint import faults
from tests.report_builders import record, report_of
from tests.test_report_figures import assert_legible

pytestmark = pytest.mark.real_data

RUNS = {
    "eight ranks": "ranks/dlrm*.json.gz",
    "a host-bound model": "h100_bert_small_hostbound.json.gz",
    "several streams": "multistream_overlap_rank3.json.gz",
    "mangled ROCm names and a step with a long name": "sglang_qwen3_8b_prefilldecode.json.gz",
    "a device that is always busy": "ns_resolution_rank0.json.gz",
    "a recording of graph capture": "sglang_graph_capture_bs32.json.gz",
}


@pytest.mark.parametrize("pattern", RUNS.values(), ids=RUNS)
def test_a_report_is_sound_and_its_figures_legible(data_dir: Path, tmp_path: Path, pattern: str) -> None:
    record(tmp_path / "i", *sorted((data_dir / "traces").glob(pattern)))
    report = report_of(tmp_path / "i")
    assert faults(report) == []
    assert len(report.verdicts) == 1
    assert bool(report.figures) is (report.verdicts[0].verdict.word != "void")
    for figure in report.figures:
        assert_legible(figure)
