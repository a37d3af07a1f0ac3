"""Layer 5 in the report: verdict, cells, where answers part, accuracy, self-test, keys, what it rests on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfkit.cli.app import main
from reports.figure_data import Divergences
from reports.figures import write_figure
from reports.layers_walked import LAYER_5, NONE_COUNTS
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Layer, Paragraph, Report, Table, unfolded
from tests.output_builders import lines, rows
from tests.report_builders import report_of
from tests.test_key_layer import GOOD, program


def reported(folder: Path, *arguments: str) -> Report:
    main(["regress", *arguments, "--investigation", str(folder / "i")])
    return report_of(folder / "i", commands=("regress",))


def section(report: Report) -> Layer:
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_5.title]
    return layer


def table_of(report: Report, title: str) -> list[tuple[str, ...]]:
    blocks = unfolded(section(report).blocks)
    found = next(b for b in blocks if isinstance(b, Table) and b.title.startswith(title))
    return [tuple(str(getattr(cell, "text", cell)) for cell in row) for row in found.rows]


def said(report: Report, label: str) -> str:
    blocks = unfolded(section(report).blocks)
    return next(b.plain for b in blocks if isinstance(b, Paragraph) and b.label == label)


@pytest.fixture
def different(tmp_path: Path) -> Report:
    """Two of 40 answers differ: one at its beginning, one cut."""
    a, aa = (lines(tmp_path / f"{name}.jsonl", rows()) for name in ("a", "aa"))
    changes = {3: "Answer number 3 of the model", 5: "answer number 5"}
    b = lines(tmp_path / "b.jsonl", rows(40, changes))
    return reported(tmp_path, "--a", a, "--aa", aa, "--b", b)


def test_a_difference_makes_a_sound_report_with_its_verdict_first(different: Report) -> None:
    assert faults(different) == []
    (verdict,) = different.verdicts
    assert verdict.verdict.word == "different" and verdict.strength == "strong"
    assert verdict.basis is not None and (verdict.basis.n, verdict.basis.n_unit) == (40, "samples")
    assert [Path(a.path).name for a in different.artifacts] == ["b.jsonl", "a.jsonl", "aa.jsonl"]
    assert "2 of 40 samples differ" in render(different, lambda figure: figure.name)


def test_where_answers_part_is_a_table_and_a_histogram(different: Report, tmp_path: Path) -> None:
    assert table_of(different, "Cells") == [("all", "40", "2", "0 of 40", "bytes")]
    assert [(row[0], row[3]) for row in table_of(different, "Samples that differ")] == [
        ("i3", "yes"),
        ("i5", "yes"),
    ]
    (figure,) = different.figures
    assert isinstance(figure.data, Divergences) and figure.data.places == (0.0, 1.0)
    assert "samples" in figure.about and "svg" in write_figure(figure, tmp_path).read_text("utf-8")
    assert "one byte flipped: 40 of 40" in said(different, "Self-test")


def test_accuracy_stands_with_what_it_could_have_found(tmp_path: Path) -> None:
    expected = [row | {"expected": row["text"]} for row in rows()]
    a = lines(tmp_path / "a.jsonl", expected)
    b = lines(
        tmp_path / "b.jsonl", [row | {"text": "no"} if n < 9 else row for n, row in enumerate(expected)]
    )
    report = reported(tmp_path, "--a", a, "--b", b, "--tolerant")
    assert faults(report) == [] and "9 lost and 0 gained of 40 items" in said(report, "Right and wrong")
    assert "WER" in said(report, "Right and wrong")


def test_an_invalid_comparison_has_no_strength_and_says_why(tmp_path: Path) -> None:
    a, aa = (lines(tmp_path / f"{name}.jsonl", rows()) for name in ("a", "aa"))
    b = lines(tmp_path / "b.jsonl", rows(39))
    report = reported(tmp_path, "--a", a, "--aa", aa, "--b", b)
    assert faults(report) == [] and section(report).strength.startswith("none")
    assert report.verdicts[0].verdict.word == "invalid" and report.findings == ()


def test_keys_are_a_table_that_leads_to_every_row_and_key(tmp_path: Path) -> None:
    report = reported(tmp_path, "--key-layer", program(tmp_path, GOOD))
    assert faults(report) == []
    names = [row[0] for row in table_of(report, "What keys must hold")]
    assert names[0] == "deterministic" and {row[2] for row in table_of(report, "What keys must hold")} == {
        "yes"
    }
    (artifact,) = report.artifacts
    kept = (tmp_path / "i" / artifact.path).read_text("utf-8").splitlines()
    assert len(kept) == report.verdicts[0].basis.n  # type: ignore[union-attr]
    assert sys.executable in said(report, "Asked")


def test_a_layer_that_was_not_run_says_so(tmp_path: Path) -> None:
    a, aa, b = (lines(tmp_path / f"{name}.jsonl", rows()) for name in ("a", "aa", "b"))
    report = reported(tmp_path, "--a", a, "--aa", aa, "--b", b)
    assert section(report).why_not_run == "" and report.figures == ()
    assert NONE_COUNTS not in render(report, lambda figure: figure.name)
