"""A sweep in the report: verdict, figure, table over the loads, where it bends, and what it rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.measurement import Artifact
from layers.layer3_sweep.analyse import EACH_CELL, analyse
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.model import DeviceUse, Timing
from layers.layer3_sweep.studies import QUICK
from layers.layer3_sweep.study_judge import judge_study
from perfkit.cli.app import main
from reports.figure_data import SweepCurves
from reports.layers_walked import LAYER_1, LAYER_3, NOT_RECORDED
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Report, Table, unfolded
from tests.report_builders import record_result, report_of
from tests.study_builders import ran, unified_is_slow
from tests.sweep_builders import client, latency, sweep_pass
from tests.writers.load_results import table, tables, written

A = Artifact("/sweep/requests-0.log", "a" * 64, 100)
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
    assert rows[-1]["served / shed / failed"] == "396 / not told / 4"


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


def own_sweep(folder: Path, *, artifact: Artifact | None = A) -> Report:
    """Three loads of three repeats by perfkit itself, one of which its client was late in."""
    rates = {1: 10.0, 2: 19.0, 4: 34.0}
    passes = [
        sweep_pass(
            n,
            repeat=repeat,
            throughput_rps=rate * (1 + repeat / 100),
            timings={Timing.E2E: latency(1000 * n / rate / (1 + repeat / 100))},
            client=client(loop_lag_p99_ms=500.0 if (n, repeat) == (2, 3) else 0.5),
            devices=(DeviceUse("gpu 0", "nvml", "nvml_util_pct", 20.0 * n, 50, None),),
            artifact=artifact,
        )
        for n, rate in rates.items()
        for repeat in (1, 2, 3)
    ]
    record_result(folder, judge(analyse(passes)), ["perfkit", "sweep"])
    return report_of(folder, commands=("layer1", "sweep"))


def test_repeats_are_bars_and_void_ones_crosses(tmp_path: Path) -> None:
    report = own_sweep(tmp_path)
    assert faults(report) == []
    (figure,) = report.figures
    assert isinstance(figure.data, SweepCurves)
    throughput, latencies, busy = figure.data.panels
    own, void = throughput.series
    assert [load for load, _, _ in own.points] == [1.0, 2.0, 4.0] and all(sd for _, _, sd in own.points)
    assert void.kind == "void" and [load for load, _, _ in void.points] == [2.0]
    assert latencies.title == "end to end p50, ms" and busy.title == "GPU utilisation, %"
    assert [value for _, value, _ in busy.series[0].points] == [20.0, 40.0, 80.0]


def test_a_study_is_told_by_mix_with_its_comparisons_and_what_it_does_not_show(tmp_path: Path) -> None:
    passes = [replace(swept, artifact=A) for swept in ran(QUICK, unified_is_slow)]
    record_result(tmp_path, judge_study(QUICK, analyse(passes, of_curves=EACH_CELL)), ["perfkit", "sweep"])
    report = report_of(tmp_path, commands=("layer1", "sweep"))
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.what == "the study scheduling:quick" and verdict.verdict.word == "settings-differ"
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_3.title]
    tables = [block for block in unfolded(layer.blocks) if isinstance(block, Table)]
    assert [len(table.rows) for table in tables[:2]] == [6, 6]
    page = render(report, lambda figure: "")
    assert "0.70x \\[" in page or "0.70x [" in page
    assert "is not a GPU" in page


def test_a_sweep_without_the_files_behind_it_is_dropped_and_says_why(tmp_path: Path) -> None:
    report = own_sweep(tmp_path, artifact=None)
    assert report.verdicts == () and "no hash" in report.runs[0].dropped
