"""A study of switches in the report, and the story of a single A/B."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layers.layer2_stacks.model import Share
from layers.layer4_ab.known import known_beside
from layers.layer4_ab.model import LeafEvidence, LeafShare, StageShare
from layers.layer4_ab.story import NO_HYPOTHESIS, NO_PROOF, NO_SYMPTOM, Known, earlier_symptom, story_of
from perfkit.cli.app import main
from reports.layers_walked import LAYER_4
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Layer, Report, Table, unfolded
from tests.ab_builders import analysed, arm_a, arm_b, judged
from tests.ab_study_builders import judged as study
from tests.command_runs import document
from tests.report_builders import record_result, report_of
from tests.test_ab_command import both


@pytest.fixture
def report(tmp_path: Path) -> Report:
    folder = tmp_path / "investigation"
    record_result(folder, study(), ["perfkit", "ab", "--study", "optimizations:quick"])
    return report_of(folder, commands=("layer1", "ab"))


def rows(report: Report, title: str) -> list[tuple[str, ...]]:
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_4.title]
    assert isinstance(layer, Layer)
    found = next(b for b in unfolded(layer.blocks) if isinstance(b, Table) and b.title.startswith(title))
    return [tuple(str(getattr(cell, "text", cell)) for cell in row) for row in found.rows]


def test_a_study_makes_a_sound_report(report: Report) -> None:
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.verdict.word == "improvement" and "optimizations:quick" in verdict.what
    assert "encoder_thread, left out" in render(report, lambda figure: figure.name)


def test_every_step_has_a_row_evidence_and_a_story(report: Report) -> None:
    made = {row[0]: row for row in rows(report, "Every step")}
    assert len(made) == 11 and made["radix_key, left out"][5:7] == ("improvement", "4")
    assert made["cuda_graph, ladder"][-1] == "not asked" and made["cuda_graph, ladder"][-2] == "yes"
    evidence = [row for row in rows(report, "Evidence") if row[0] == "radix_key, left out"]
    assert ("frame_keys.py, thread ar") in {row[1] for row in evidence} and len(evidence) == 4
    blocks = {row[0]: row for row in rows(report, "What the host does")}
    assert "worth +1" in blocks["the key of each frame"][4]
    parts = [row[0] for row in rows(report, "The change as a story: lookahead, left out")]
    assert parts == ["symptom", "hypothesis", "tool", "evidence", "change", "effect", "cost"]


def test_an_a_b_that_stands_alone_tells_its_story_and_what_nobody_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = document(capsys, "ab", *both(tmp_path, 1.1))["story"]
    assert (story["symptom"], story["hypothesis"], story["evidence"]) == (NO_SYMPTOM, NO_HYPOTHESIS, NO_PROOF)
    assert "helps: throughput_rps +10.00 %" in story["effect"] and "4 pairs of server starts" in story["tool"]


def test_the_story_has_the_evidence_that_was_recorded_beside_the_runs() -> None:
    side = Share(30, 100, 0.3, 0.2, 0.4, "made", 1.0, (0.3,), None)
    gone = replace(side, hits=0, value=0.0, low=0.0, high=0.03)
    leaf = LeafEvidence((LeafShare("keys.py", "idle", "ar", side, gone, -0.4, -0.2),), (), (), ())
    found = replace(analysed(), leaf=leaf, stage=StageShare("vocoder", 0.4, "the ledger"))
    story = story_of(found, judged().verdict, Known())
    assert "vocoder: 40" in story.evidence and "share of the suspect: keys.py: 30.0 %" in story.evidence
    assert "perfkit stages; perfkit layer2" in story.tool


def test_the_study_takes_no_option_that_it_would_ignore(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--margin", "3"], ["--no-stream"], ["--vs", "lookahead=on"], ["--starts", "run"]):
        assert main(["ab", "--study", "optimizations:quick", *given]) == 2
        assert f"leave out {given[0].replace('--no-', '--')}" in capsys.readouterr().err
    assert main(["ab", "--minutes", "3"]) == 2


def test_a_symptom_is_what_an_earlier_result_here_found() -> None:
    def told(command: str, word: str, code: int = 0) -> dict[str, object]:
        verdict = {"word": word, "directional": False, "because": "so", "exit_code": code}
        return {"command": command, "verdict": verdict}

    documents = [told("layer1", "host-bound"), told("layer2", "blocked"), told("layer2", "void", 4)]
    assert earlier_symptom(documents) == "perfkit layer2, earlier here: blocked: so"
    assert earlier_symptom([told("ab", "improvement")]) == ""


def test_a_switch_of_the_bundled_engine_brings_its_hypothesis_along() -> None:
    sides = [{"server": "sample-engine 0.1", "lookahead": one} for one in ("off", "on")]
    asked: dict[str, Any] = {"variable": "lookahead", "derived": ("settings",)}
    found = analysed(arm_a(facts=sides[0]), arm_b(facts=sides[1], by=1.1), **asked)
    known = known_beside(found, [])
    assert known.symptom.startswith("in general, not measured here") and "rows" in known.symptom
    elsewhere = [{**one, "server": "vllm 1"} for one in sides]
    other = analysed(arm_a(facts=elsewhere[0]), arm_b(facts=elsewhere[1], by=1.1), **asked)
    assert known_beside(other, []) == Known()


def test_an_invalid_a_b_has_no_effect_to_tell() -> None:
    found = analysed(arm_a(data={"requests": 800.0}), arm_b(data={"requests": 400.0}))
    verdict = judged(arm_a(data={"requests": 800.0}), arm_b(data={"requests": 400.0})).verdict
    assert verdict.word == "invalid"
    assert story_of(found, verdict, Known()).effect.startswith("not known: ")
