"""A sweep in the report: verdict, figure, table over the loads, where it bends, and what it rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.cli.app import main
from reports.figure_data import SweepCurves
from reports.layers_walked import LAYER_1, LAYER_3, NOT_RECORDED
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Report, Table, unfolded
from tests.report_builders import report_of
from tests.writers.load_results import table, tables, written

COLUMNS = "conc | current req/s | baseline req/s | current lat mean/p95 | current WER | current completed"
ROWS = (
    "1 | 10 | 15 | 0.100 / 0.120 s | 0.0122 | 400/400",
    "8 | 60 | 90 | 0.133 / 0.180 s | 0.0122 | 400/400",
    "16 | 61 | 160 | 0.262 / 0.300 s | 0.0124 | 396/400",
)


def imported(tmp_path: Path, *made: object) -> Report:
    """A report of one import of tables."""
    path = written(tmp_path / "sweep.json", tables(*made))  # type: ignore[arg-type]
    folder = tmp_path / "investigation"
    main(["import", path, "--investigation", str(folder)])
    return report_of(folder, commands=("layer1", "sweep"))


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return imported(tmp_path, table("both", COLUMNS, *ROWS))


def test_a_sweep_makes_a_sound_report_with_its_verdict_first(report: Report) -> None:
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.verdict.word == "undecided" and verdict.basis is not None and verdict.basis.n == 1200
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_3.title]
    assert layer.why_not_run == "" and layer.strength
    (first,) = [layer for layer in report.layers if layer.title == LAYER_1.title]
    assert first.why_not_run == NOT_RECORDED


def test_its_table_has_what_was_measured_and_no_column_of_nothing(report: Report) -> None:
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_3.title]
    points = next(b for b in unfolded(layer.blocks) if isinstance(b, Table) and b.title == "Points")
    titles = [column.title for column in points.columns]
    assert {"load", "throughput", "mean", "p95", "accuracy", "control over this"} <= set(titles)
    assert "GPU util" not in titles and "TPOT p50" not in titles
    rows = [dict(zip(titles, row, strict=True)) for row in points.rows]
    assert [(row["load"], row["throughput"], row["control over this"]) for row in rows] == [
        ("1", "10", "1.50x"),
        ("8", "60", "1.50x"),
        ("16", "61", "2.62x"),
    ]
    assert rows[-1]["served / shed / failed"] == "396 / 0 / 4"


def test_its_figure_draws_throughput_with_control_latency_and_accuracy(report: Report) -> None:
    (figure,) = report.figures
    assert isinstance(figure.data, SweepCurves)
    assert [panel.title for panel in figure.data.panels] == [
        "throughput, requests a second",
        "end to end, ms",
        "accuracy, wer",
    ]
    assert [series.label for series in figure.data.panels[0].series] == ["this server", "control"]
    assert figure.data.marks == ((8.0, "plateau start"),)


def test_the_page_says_it_in_words_and_escapes_what_files_say(tmp_path: Path) -> None:
    made = [table(f"<b>{n}</b> | `x`", COLUMNS, *ROWS) for n in (1, 2)]
    page = render(imported(tmp_path, *made), lambda figure: f"figures/{figure.name}.svg")
    assert "### Layer 3. Concurrency sweep" in page and "figures/run1-sweep.svg" in page
    assert "Where the curve bends, by each definition" in page and "Other curves" in page
    assert r"table=1: \<b>1\</b> \| \`x\`" in page


def test_a_sweep_without_a_pass_that_stands_has_no_curve_and_says_why(tmp_path: Path) -> None:
    odd = table("", "conc | req/s | lat mean", "1 | 10 | 0.5 s", "2 | 20 | 0.5 s")
    report = imported(tmp_path, odd)
    assert faults(report) == [] and report.figures == ()
    assert "No curve" in render(report, lambda figure: "")
