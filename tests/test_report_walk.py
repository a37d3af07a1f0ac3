"""The walk in the report: its verdict first, each part with its decision, what was ruled out; all inert."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.result import Result
from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit, Verdict
from perfkit.cli.registry import BY_NAME
from perfkit.walk.conclude import result_of
from perfkit.walk.journal import Told, document_of
from perfkit.walk.model import Candidate, Part
from perfkit.walk.profiles import QUICK
from reports.artifacts import artifacts_of
from reports.build import build_report, read_investigation
from reports.history import history
from reports.html_page import html_page
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Report
from tests.report_builders import HOSTILE_NAMES, record_result
from tests.test_walk_conclude import BETTER, FIRST, SAME, TRIED, told


def walk_result(folder: Path, journal: Told, name: str = "walk-1", *, whole: bool = True) -> Result:
    """The document of a walk, with those of its parts beside it."""
    place = folder / "artifacts" / name
    place.mkdir(parents=True, exist_ok=True)
    for part, outcome in journal.outcomes.items():
        document_of(place, part).write_text(json.dumps(outcome.document))
    return result_of(journal, QUICK, "the bundled engine", place, whole=whole)


def report_of(folder: Path, *results: Result) -> Report:
    for result in results:
        record_result(folder, result, ["perfkit", "investigate", "--yes"])
    with Investigation.open(folder, create=False) as opened:
        return build_report(read_investigation(opened), BY_NAME)


def text_of(report: Report) -> str:
    assert faults(report) == []
    return render(report, lambda figure: "")


def test_each_part_leads_to_its_run(tmp_path: Path) -> None:
    journal = found()
    said = journal.outcomes[Part.LAYER4].document["verdict"]
    verdict = Verdict(said["word"], False, said["because"], Exit.OK)
    report = report_of(tmp_path, Result("ab", verdict), walk_result(tmp_path, journal))
    walk = text_of(report).split("### The walk")[1]
    assert "| Layer 4 | run 1 | improvement |" in walk and "| Layer 1 | not recorded |" in walk


def found(**more: Any) -> Told:
    return told(FIRST, BETTER, SAME, candidates=(TRIED,), chosen=TRIED, **more)


def test_the_walk_comes_first_with_its_strength_and_each_part_with_what_followed(tmp_path: Path) -> None:
    left = {Part.PREFLIGHT: "no rights here"}
    text = text_of(report_of(tmp_path, walk_result(tmp_path, found(left_out=left))))
    assert "**Verdict: CAUSE-FOUND** " in text and "# Findings: the bundled engine" in text
    walk = text.split("### The walk")[1].split("### ")[0]
    order = ["Pre-flight", "Layer 1", "Stage ledger", "Layer 2", "Layer 3", "Layer 4", "Layer 5"]
    rows = [line for line in walk.split("\n") if line.startswith(tuple(f"| {name} " for name in order))]
    assert [row.split("|")[1].strip() for row in rows[:7]] == order
    assert "no rights here" in rows[0] and "weaker for it" in rows[0]
    assert "is the limit" in rows[0] or "fit" in rows[0]
    assert "the answers are the same" in rows[6]
    assert "Ruled out (negative findings)" in walk and "a weak one" in walk
    assert "Seen: Layer 2: 80 % at" in walk


def test_a_walk_that_ruled_nothing_out_and_proposes_nothing_says_so(tmp_path: Path) -> None:
    text = text_of(report_of(tmp_path, walk_result(tmp_path, told(BETTER))))
    assert "no part that ended found something to be no cause" in text
    assert "knows no switch of this server" in text


def test_an_a_a_walk_is_told_as_one(tmp_path: Path) -> None:
    text = text_of(report_of(tmp_path, walk_result(tmp_path, found(asked={"a_a": True}))))
    assert "Layer 4 compared A with itself, as asked" in text


def test_of_a_walk_that_went_on_the_last_word_counts(tmp_path: Path) -> None:
    cut = walk_result(tmp_path, told(FIRST), whole=False)
    report = report_of(tmp_path, cut, walk_result(tmp_path, found()))
    assert [verdict.verdict.word for verdict in report.verdicts] == ["cause-found"]
    assert report.runs[0].dropped == "run 2 went on with it"
    other = walk_result(tmp_path, told(FIRST), "walk-2")
    words = [verdict.verdict.word for verdict in report_of(tmp_path, other).verdicts]
    assert words == ["no-cause-named", "cause-found"]


@pytest.mark.parametrize(("command", "section"), [("sweep", "sweep"), ("ab", "experiment")])
def test_of_a_part_that_went_on_in_its_folder_the_last_run_counts(
    tmp_path: Path, command: str, section: str
) -> None:
    verdict = Verdict("partial", False, "so", Exit.NO_CONCLUSION)
    for name in ("one", "one", "two"):
        sections = {section: {"folder": f"/somewhere/{name}"}}
        record_result(tmp_path, Result(command, verdict, sections=sections), ["perfkit", command, name])
    with Investigation.open(tmp_path, create=False) as opened:
        runs = opened.runs()
    rows = history(runs, {run.id: artifacts_of(run, []) for run in runs}, {})
    assert [row.dropped for row in rows] == ["run 2 went on with it", "", ""]


def test_hostile_names_stay_inert_in_the_walk(tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE_NAMES):
        folder = tmp_path / str(number)
        hostile = Candidate(name, name, (f"Layer 2: {name}",), name, name, name)
        journal = told(FIRST, BETTER, SAME, candidates=(hostile,), chosen=hostile)
        text = text_of(report_of(folder, walk_result(folder, journal)))
        page = html_page(text, lambda path: "")
        assert not re.search(r"(?<!\\)<script>alert|(?<!\\)\]\(http://evil|\x1b|\n## heading", text)
        assert not re.search(r"<script>alert|href=.http://evil|\x1b", page)
