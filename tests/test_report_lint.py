"""The rules of a report: each is broken once, and found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.finding import Finding, Strength
from layers.evidence.measurement import Artifact, Measurement
from reports.layers_walked import KNOWN, LAYER_1
from reports.lint import faults, require_sound
from reports.model import Basis, Block, Computed, FindingRow, Folded, Layer, Member, Name, Paragraph, Report
from tests.report_builders import host_bound_trace, record, report_of, small_table, with_layer


@pytest.fixture
def report(tmp_path: Path) -> Report:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    return report_of(tmp_path / "i")


def with_block(report: Report, block: Block) -> Report:
    layer = next(layer for layer in report.layers if layer.title == LAYER_1.title)
    return with_layer(report, replace(layer, blocks=(block,)))


def with_finding(report: Report, finding: Finding) -> Report:
    return replace(report, findings=(FindingRow(1, (Member(1, "", finding.statement, finding),)),))


def test_a_recorded_report_is_sound(report: Report) -> None:
    assert faults(report) == []
    require_sound(report)


@pytest.mark.parametrize("text", ["busy 7.9 %", "5 ms of waiting", "1.5x slower", "took 3µs"])
def test_a_measured_number_in_prose_needs_a_basis(report: Report, text: str) -> None:
    assert faults(with_block(report, Paragraph("Busy", text))) == ["Busy: no n"]
    (artifact,) = report.artifacts
    assert faults(with_block(report, Paragraph("Busy", text, Basis(5, "steps", "by eye", (artifact,))))) == []


def test_a_number_between_names_needs_a_basis_too(report: Report) -> None:
    assert faults(with_block(report, Paragraph("Gap", (Name("gemm"), " after 5 ms")))) == ["Gap: no n"]


def test_sentences_that_are_folded_away_share_the_basis_of_their_fold(report: Report) -> None:
    inner = Paragraph("S1", "idle 7.9 %")
    assert faults(with_block(report, Folded("Not there", (inner,)))) == ["S1: no n"]
    basis = Basis(5, "steps", "by eye", report.artifacts)
    assert faults(with_block(report, Folded("Not there", (inner,), basis))) == []
    without_n = Folded("Not there", (inner,), replace(basis, n=0))
    assert faults(with_block(report, without_n)) == ["Not there: no n"]


@pytest.mark.parametrize("text", ["Layer 2 comes next", "stream 7", "S1 is there"])
def test_a_name_with_a_digit_is_no_measured_number(report: Report, text: str) -> None:
    assert faults(with_block(report, Paragraph("Next", text))) == []


@pytest.mark.parametrize("broken", [{"n": 0}, {"n_unit": ""}, {"method": ""}, {"artifacts": ()}])
def test_a_basis_needs_n_unit_method_and_artifact(report: Report, broken: dict[str, object]) -> None:
    basis = replace(Basis(5, "steps", "by eye", report.artifacts), **broken)  # type: ignore[arg-type]
    assert len(faults(with_block(report, Paragraph("Busy", "7.9 %", basis)))) == 1


def test_an_artifact_must_be_listed(report: Report) -> None:
    stranger = Basis(5, "steps", "by eye", (Artifact("/elsewhere", "0" * 64, 1),))
    assert faults(with_block(report, Paragraph("Busy", "7.9 %", stranger))) == [
        "Busy: no method, or no artifact"
    ]


def test_what_is_calculated_says_from_what(report: Report) -> None:
    assert faults(with_block(report, Paragraph("Bound", "0.3 ms", Computed("datasheet rates")))) == []
    assert len(faults(with_block(report, Paragraph("Bound", "0.3 ms", Computed(""))))) == 1


def test_a_bare_number_in_a_table_needs_the_unit_of_its_column(report: Report) -> None:
    layer = next(layer for layer in report.layers if layer.title == LAYER_1.title)
    (artifact,) = report.artifacts
    bare = replace(layer, blocks=(small_table(artifact),))
    assert faults(with_layer(report, bare)) == ["Numbers, value: a number without a unit"]
    assert faults(with_layer(report, replace(layer, blocks=(small_table(artifact, unit="ms"),)))) == []


def test_a_table_needs_n(report: Report) -> None:
    layer = next(layer for layer in report.layers if layer.title == LAYER_1.title)
    empty = replace(layer, blocks=(small_table(report.artifacts[0], n=0, unit="ms"),))
    assert faults(with_layer(report, empty)) == ["Numbers: no n"]


def test_a_finding_needs_evidence_with_an_artifact(report: Report) -> None:
    claim = Finding("it is slow", Strength.WEAK, "a guess", "make it fast")
    assert faults(with_finding(report, claim)) == ["finding 1: no evidence"]
    unread = Measurement("busy", 0.1, "share", 5, "steps", "by eye")
    told = replace(claim, measurements=(unread,))
    assert faults(with_finding(report, told)) == ["finding 1: busy : no artifact"]


def test_evidence_in_words_needs_a_file_that_is_listed(report: Report) -> None:
    claim = Finding("it is slow", Strength.WEAK, "a guess", "make it fast", evidence="9 of 10 steps")
    assert faults(with_finding(report, claim)) == ["finding 1: no evidence"]
    assert faults(with_finding(report, replace(claim, artifacts=report.artifacts))) == []
    stranger = replace(claim, artifacts=(Artifact("/elsewhere", "0" * 64, 1),))
    assert faults(with_finding(report, stranger)) == ["finding 1: evidence from a file that is not listed"]


def test_a_finding_needs_the_rule_of_its_strength(report: Report) -> None:
    finding = replace(report.findings[0].first.finding, rule="")
    assert len(faults(with_finding(report, finding))) == 1


@pytest.mark.parametrize("title", [known.title for known in KNOWN])
def test_no_layer_goes_without_a_row(report: Report, title: str) -> None:
    layers = tuple(layer for layer in report.layers if layer.title != title)
    assert faults(replace(report, layers=layers)) == [f"{title}: 0 rows instead of one"]


def test_a_layer_that_was_not_run_needs_a_reason(report: Report) -> None:
    silent = with_layer(report, Layer("Layer 4. A/B", "Better?", why_not_run=""))
    assert faults(silent) == ["Layer 4. A/B: no content, and no reason why it was not run"]


def test_a_verdict_needs_n_and_strength(report: Report) -> None:
    (verdict,) = report.verdicts
    bare = replace(verdict, basis=None, strength=None)
    assert len(faults(replace(report, verdicts=(bare,)))) == 2


def test_an_artifact_needs_its_hash(report: Report) -> None:
    (artifact,) = report.artifacts
    unhashed = replace(artifact, sha256="")
    assert f"artifact {artifact.path}: no sha256" in faults(replace(report, artifacts=(unhashed,)))


def test_a_broken_report_is_a_fault_of_perfkit_itself(report: Report) -> None:
    with pytest.raises(RuntimeError, match="breaks its own rules, so it was not written: Pre-flight"):
        require_sound(replace(report, layers=report.layers[1:]))
