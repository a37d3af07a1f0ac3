"""An A/B in the report: verdict, pairs, yardsticks, gates, runs that were left out, and its figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.cli.app import main
from reports.figure_data import AbLatency, AbPairs, AbTimeline
from reports.figures import write_figure
from reports.layers_walked import LAYER_4, NONE_COUNTS
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Layer, Paragraph, Report, Table, unfolded
from tests.report_builders import report_of
from tests.test_ab_blocks import stepped
from tests.test_ab_command import arm, both
from tests.test_ab_suspect import PLACE, raw


def reported(tmp_path: Path, *arguments: str) -> Report:
    folder = tmp_path / "investigation"
    main(["ab", *arguments, "--investigation", str(folder)])
    return report_of(folder, commands=("layer1", "ab"))


def section(report: Report) -> Layer:
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_4.title]
    return layer


def rows(report: Report, title: str) -> list[tuple[object, ...]]:
    blocks = unfolded(section(report).blocks)
    found = next(b for b in blocks if isinstance(b, Table) and title in b.title)
    return [tuple(getattr(cell, "text", cell) for cell in row) for row in found.rows]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    floor = ["--aa", *arm(tmp_path, "again")]
    return reported(tmp_path, *both(tmp_path, 1.1), *floor, "--margin", "2")


def test_an_a_b_makes_a_sound_report_with_its_verdict_first(report: Report) -> None:
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.verdict.word == "improvement"
    assert verdict.basis is not None and (verdict.basis.n, verdict.basis.n_unit) == (4, "pairs of starts")
    assert section(report).why_not_run == "" and section(report).strength.startswith("medium")
    text = render(report, lambda figure: figure.name)
    assert "+10.00 %" in text and "a0.json" in text


def test_pairs_yardsticks_and_gates_are_told(report: Report) -> None:
    assert [(row[0], row[6]) for row in rows(report, "of the pairs")] == [
        *(("1", "A"), ("2", "B"), ("3", "A"), ("4", "B"))
    ]
    told = {row[0]: row[2] for row in rows(report, "held against")}
    assert told.keys() >= {"mean ratio", "interval", "A/A floor", "detectable", "margin", "pairs needed"}
    assert "a-a-runs of 4 runs" in str(told["A/A floor"])
    assert [row[:2] for row in rows(report, "three gates")] == [
        *(("startup", "not-shown"), ("accuracy", "not-shown"), ("performance", "passed")),
        ("safe", "not shown"),
    ]
    assert len(rows(report, "Every run")) == 8


def test_the_figures_show_pairs_latency_and_the_session(report: Report, tmp_path: Path) -> None:
    drawn = {type(figure.data): figure for figure in report.figures}
    pairs, latency, session = (drawn[kind].data for kind in (AbPairs, AbLatency, AbTimeline))
    assert isinstance(pairs, AbPairs) and len(pairs.pairs) == 4 and pairs.margin == 0.02
    assert pairs.interval is not None and pairs.interval[0] < pairs.mean < pairs.interval[1]
    assert isinstance(latency, AbLatency) and {line.arm for line in latency.lines} == {"a", "b"}
    assert isinstance(session, AbTimeline) and [mark.at_min for mark in session.marks[:4]] == pytest.approx(
        [0, 3, 4, 7], abs=0.01
    )
    for figure in report.figures:
        assert "<svg" in write_figure(figure, tmp_path).read_text("utf-8")


def test_an_invalid_a_b_shows_its_reason_and_no_ratio(tmp_path: Path) -> None:
    files = ["--a", *arm(tmp_path, "a"), "--b", *arm(tmp_path, "b", 1.1, model_id="n", backend="x")]
    report = reported(tmp_path, *files)
    assert faults(report) == [] and report.findings == () and report.verdicts[0].basis is None
    (paragraph,) = [b for b in section(report).blocks if isinstance(b, Paragraph) and b.label == "No result"]
    assert "PK520" in paragraph.plain
    assert not any(isinstance(figure.data, AbPairs) for figure in report.figures)


def test_one_pair_is_told_without_an_interval(tmp_path: Path) -> None:
    report = reported(tmp_path, "--a", arm(tmp_path, "a")[0], "--b", arm(tmp_path, "b", 1.1)[0])
    assert faults(report) == []
    assert any(isinstance(b, Paragraph) and b.label == "One pair" for b in section(report).blocks)


def test_an_earlier_a_b_of_the_same_files_counts_no_more(tmp_path: Path) -> None:
    files = both(tmp_path, 1.1)
    reported(tmp_path, *files)
    report = reported(tmp_path, *files)
    assert len(report.verdicts) == 1 and sum(bool(row.dropped) for row in report.runs) == 1
    assert section(report).why_not_run != NONE_COUNTS


def test_what_stands_behind_the_ratio_is_told(tmp_path: Path) -> None:
    stacks = ["--stacks-a", *raw(tmp_path, "a", 90), "--stacks-b", *raw(tmp_path, "b", 0)]
    traces = [f"--trace-{arm}={stepped(tmp_path / f'{arm}.json')}" for arm in ("a", "b")]
    report = reported(tmp_path, *both(tmp_path, 1.1), *stacks, "--suspect", PLACE, *traces)
    assert faults(report) == []
    ((place, mode, before, after, moved),) = rows(report, "suspect's share")
    assert (place, mode) == (PLACE, "idle") and str(before).startswith("30.0 % [")
    assert str(after).startswith("0 of 900 ticks (at most") and str(moved).startswith("-")
    told = {block.label: block.text for block in section(report).blocks if isinstance(block, Paragraph)}
    assert "clocks of the card: not measured" in told["What was looked at beside each run"]
    assert "the device stands still for" in told["What blocks inside a step, A"]
