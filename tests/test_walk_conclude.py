"""What a walk comes to: its verdict, how far that carries, what was left out and what was ruled out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from perfkit.walk.conclude import result_of
from perfkit.walk.decide import WEAKENS, decide
from perfkit.walk.journal import Told
from perfkit.walk.model import Candidate, Outcome, Part
from perfkit.walk.profiles import PROFILES, QUICK
from perfkit.walk.time_left import expected_s, left_s
from tests.test_walk_decisions import outcome

TRIED = Candidate("radix_key", "why", ("Layer 2: 80 % at frame_keys.py:61",), "how", "a=1", "a=2")


def finding(strength: str, kind: str = "verdict", negative: bool = False) -> dict[str, Any]:
    said = {"statement": f"a {strength} one", "strength": strength, "rule": "4 pairs", "kind": kind}
    return {**said, "negative": negative}


def told(*outcomes: Outcome, left_out: dict[Part, str] | None = None, **more: Any) -> Told:
    """A journal in which these parts ended."""
    return Told(
        outcomes={one.part: one for one in outcomes},
        decisions={one.part: decide(one) for one in outcomes},
        seconds={one.part: 1.0 for one in outcomes},
        left_out=left_out or {},
        **more,
    )


FIRST = outcome(Part.LAYER1, "host-bound", findings=[finding("medium"), finding("weak", "consequence", True)])
BETTER = outcome(Part.LAYER4, "improvement", findings=[finding("strong")])
SAME = outcome(Part.LAYER5, "identical", findings=[])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in Part:
        (tmp_path / f"{part}.json").write_text("{}")
    return tmp_path


def result(journal: Told, folder: Path, *, whole: bool = True) -> Result:
    return result_of(journal, QUICK, "a server --api-key sesame", folder, whole=whole)


def test_a_change_that_gains_and_keeps_the_answers_is_the_cause_found(folder: Path) -> None:
    journal = told(FIRST, BETTER, SAME, candidates=(TRIED,), chosen=TRIED)
    found = result(journal, folder)
    assert (found.verdict.word, found.verdict.exit_code) == ("cause-found", Exit.OK)
    assert found.verdict.because.startswith("changed radix_key. Layer 2: ")
    assert "frame_keys.py:61" in found.verdict.because and "answers: identical" in found.verdict.because
    assert (found.sections["strength"], found.sections["rule"]) == ("strong", "Layer 4: 4 pairs")
    assert found.verdict.next_step.startswith("keep the change")
    assert "sesame" not in str(found.sections)


@pytest.mark.parametrize("part", [Part.LAYER1, Part.STAGES, Part.LAYER2])
def test_a_part_that_was_left_out_weakens_what_is_found(folder: Path, part: Part) -> None:
    outcomes = [one for one in (FIRST, BETTER, SAME) if one.part is not part]
    journal = told(*outcomes, left_out={part: "no time"}, candidates=(TRIED,), chosen=TRIED)
    found = result(journal, folder)
    assert found.sections["strength"] == "medium" and f"without {part.label}" in found.sections["rule"]
    (row,) = (row for row in found.sections["walk"] if row["command"] == part.value)
    assert (row["left_out"], row["weakens"]) == ("no time", WEAKENS[part])


def test_answers_that_differ_fail_the_walk(folder: Path) -> None:
    differ = outcome(Part.LAYER5, "different", 1, findings=[])
    found = result(told(FIRST, BETTER, differ, candidates=(TRIED,), chosen=TRIED), folder)
    assert found.verdict.exit_code == Exit.FAILED and "do not keep" in found.verdict.next_step


@pytest.mark.parametrize("a_a", [False, True])
def test_without_a_gain_a_cause_is_proposed_and_never_found(folder: Path, a_a: bool) -> None:
    none = outcome(Part.LAYER4, "inconclusive", 3, findings=[])
    journal = told(FIRST, none, candidates=(TRIED,), chosen=TRIED, asked={"a_a": a_a})
    found = result(journal, folder)
    assert (found.verdict.word, found.verdict.exit_code) == ("cause-proposed", Exit.NO_CONCLUSION)
    assert ("A against itself" in found.verdict.because) is a_a
    assert found.sections["strength"] == "weak"


def test_without_evidence_for_a_switch_none_is_named(folder: Path) -> None:
    found = result(told(FIRST), folder)
    assert found.verdict.word == "no-cause-named" and "Layer 1: HOST-BOUND" in found.verdict.because


@pytest.mark.parametrize("known", [False, True])
def test_a_busy_device_is_a_verdict_that_leads_to_its_kernels(folder: Path, known: bool) -> None:
    more: dict[str, Any] = {"roofline": {}} if known else {}
    anatomy = [{"ncu_command": "ncu --set full -k gemm"}]
    first = outcome(Part.LAYER1, "device-bound", findings=[finding("medium")], anatomy=anatomy, **more)
    found = result(told(first), folder)
    assert (found.verdict.word, found.verdict.exit_code) == ("device-bound", Exit.OK)
    assert "ncu --set full -k gemm" in found.verdict.next_step
    assert ("perfkit roofline" in found.verdict.next_step) is not known


def test_what_was_ruled_out_and_what_could_not_be_run_is_said(folder: Path) -> None:
    failed = Outcome(Part.LAYER3, Exit.INTERNAL, {})
    found = result(told(FIRST, failed, candidates=(TRIED,)), folder)
    assert [one["layer"] for one in found.sections["ruled_out"]] == ["Layer 1"]
    assert "could not be run: Layer 3" in found.verdict.because


def test_a_walk_that_was_cut_says_how_far_it_came(folder: Path) -> None:
    found = result(told(FIRST), folder, whole=False)
    assert (found.verdict.word, found.verdict.next_step) == ("partial", "perfkit investigate --resume")
    later = [row for row in found.sections["walk"] if row["command"] != "layer1"]
    assert {row["left_out"] for row in later} == {"the walk has not come so far"}


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_say_what_each_part_can_reach_and_are_about_as_long_as_they_say(name: str) -> None:
    profile = PROFILES[name]
    assert set(profile.reaches) == set(Part) and profile.can and profile.cannot
    low, high = map(float, profile.minutes.split(" to "))
    minutes = sum(expected_s(part, profile) for part in Part) / 60
    assert low <= minutes <= high


def test_what_is_left_is_what_is_not_done() -> None:
    rest = sum(expected_s(part, QUICK) for part in (Part.LAYER4, Part.LAYER5))
    whole = expected_s(Part.LAYER3, QUICK)
    assert left_s(Part.LAYER3, QUICK, 0.0, set()) == whole + rest
    assert left_s(Part.LAYER3, QUICK, 2 * whole, {Part.LAYER4}) == expected_s(Part.LAYER5, QUICK)
    assert left_s(Part.LAYER5, replace(QUICK, answers=("--concurrency=1,4",)), 0.0, set()) > 0
