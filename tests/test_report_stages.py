"""The stage ledger in the report: verdict, stacked bars over load, the ledger, all runs, what it rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.cli.app import main
from reports.figure_data import StageBars
from reports.figures import write_figure
from reports.layers_walked import NONE_COUNTS, STAGES
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Layer, Report, Table, unfolded
from tests.report_builders import report_of
from tests.stage_builders import asr_request, asr_run, written
from tests.writers.load_results import table, tables
from tests.writers.load_results import written as written_json


def reported(tmp_path: Path, *paths: str) -> Report:
    folder = tmp_path / "investigation"
    main(["stages", *paths, "--investigation", str(folder)])
    return report_of(folder, commands=("layer1", "stages"))


def section(report: Report) -> Layer:
    (layer,) = [layer for layer in report.layers if layer.title == STAGES.title]
    return layer


def rows(report: Report, title: str) -> list[tuple[object, ...]]:
    found = next(
        b for b in unfolded(section(report).blocks) if isinstance(b, Table) and b.title.startswith(title)
    )
    return [tuple(getattr(cell, "text", cell) for cell in row) for row in found.rows]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    light = written(tmp_path / "light.jsonl", asr_run(30, run="light"))
    full = written(tmp_path / "full.jsonl", asr_run(80, 5, run="full", queue=100.0))
    return reported(tmp_path, light, full)


def test_a_ledger_makes_a_sound_report_with_its_verdict_first(report: Report) -> None:
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.verdict.word == "scheduling-bound"
    assert verdict.basis is not None and (verdict.basis.n, verdict.basis.n_unit) == (80, "complete requests")
    assert section(report).why_not_run == "" and section(report).strength.startswith("medium")
    assert [Path(a.path).name for a in report.artifacts] == ["light.jsonl", "full.jsonl"]
    assert report.findings and "queue share 52.6 %" in render(report, lambda figure: figure.name)


def test_the_ledger_adds_up_to_the_request(report: Report) -> None:
    ledger = rows(report, "The ledger of full")
    assert [(r[1], r[2], r[3], r[7]) for r in ledger] == [
        ("queue (admission)", "80", "100", "52.6 %"),
        ("build", "80", "5", "2.6 %"),
        ("first_forward", "80", "30", "15.8 %"),
        ("decode", "80", "54", "28.4 %"),
        ("hop (build to queue)", "80", "1", "0.5 %"),
        ("end to end", "80", "190", "100.0 %"),
        ("unaccounted", "", "", "0.0 %"),
    ]


def test_runs_are_bars_over_load_whose_segments_add_up(report: Report, tmp_path: Path) -> None:
    (figure,) = report.figures
    assert isinstance(figure.data, StageBars)
    assert [name for name, _ in figure.data.runs] == ["light: 100 ms", "full: 190 ms"]
    for _, segments in figure.data.runs:
        assert sum(share for _, share in segments) == pytest.approx(1)
    assert dict(figure.data.runs[1][1])["queue"] == pytest.approx(100 / 190)
    assert "waits" in write_figure(figure, tmp_path).read_text("utf-8")
    assert [(r[0], r[1], r[3]) for r in rows(report, "All runs")] == [
        ("light", "stage-bound", "30 / 0 / 0 / 0"),
        ("full", "scheduling-bound", "80 / 0 / 0 / 0"),
    ]


def test_a_published_table_is_told_as_means(tmp_path: Path) -> None:
    made = table(
        "a",
        "conc | queued→scheduled | decode | total",
        "8 | 10 ms | 85 ms | 100 ms",
        "16 | 120 ms | 80 ms | 210 ms",
    )
    report = reported(tmp_path, written_json(tmp_path / "t.json", tables(made)))
    assert faults(report) == [] and section(report).strength.startswith("weak")
    assert "published table of means" in render(report, lambda figure: figure.name)
    assert {r[3] for r in rows(report, "All runs")} == {"not measured"}


def test_several_files_inside_the_investigation_are_listed_where_they_lie(tmp_path: Path) -> None:
    """As a recording leaves them: a file for each process, below the artifacts."""
    events = tmp_path / "investigation" / "artifacts" / "events"
    events.mkdir(parents=True)
    lines = asr_run(40)
    front = [one for one in lines if one["stage"] == "coordinator"]
    back = [one for one in lines if one["stage"] != "coordinator"]
    paths = [written(events / f"events_{name}.jsonl", own) for name, own in (("a", front), ("b", back))]
    report = reported(tmp_path, *paths)
    assert faults(report) == []
    assert [a.path for a in report.artifacts] == [f"artifacts/events/events_{name}.jsonl" for name in "ab"]


def test_a_void_ledger_has_no_figure_and_says_so(tmp_path: Path) -> None:
    report = reported(tmp_path, written(tmp_path / "e.jsonl", asr_request("q")[:4]))
    assert report.figures == () and faults(report) == []
    assert section(report).why_not_run == "" or section(report).why_not_run == NONE_COUNTS
    assert report.verdicts[0].basis is None
