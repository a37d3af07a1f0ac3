"""A stage ledger and stacks of one server: the stage, the thread that serves it, its lines; or why none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.finding import Strength
from layers.evidence.store import Investigation
from layers.stages.joined import Joined, Sides, finding_of, join, statement_of
from parsers.stack_model import Stack, ThreadName
from reports.lint import faults
from reports.markdown_report import render
from tests.command_runs import document, run
from tests.report_builders import report_of
from tests.stack_builders import said, stack, write_raw
from tests.stage_builders import asr_run, written

ASR, OTHER = ThreadName("21", "asr"), ThreadName("22", "gauges")
NOW = datetime(2026, 8, 5, 10, tzinfo=UTC)
LEAF: dict[str, Any] = {"where": "queue.py:171", "function": "get", "share": 0.8, "low": 0.7, "high": 0.9}


def scope(name: str, *pids: int, entry: str = "run", wait: str = "queue") -> dict[str, Any]:
    leaves = [{**LEAF, "wait": wait}] if wait else [LEAF]
    return {
        "scope": name,
        "mode": "idle",
        "pids": list(pids),
        "entry": entry,
        "ticks": 900,
        "waiting": {"share": 0.8},
        "leaves": leaves,
    }


def stacks(*scopes: dict[str, Any], loop: bool = False) -> dict[str, Any]:
    thread = {"mode": "idle", "scope": scopes[0]["scope"], "why": "asked for", "loop": loop}
    verdict = {"kind": "verdict", "strength": "strong", "rule": "3 captures"}
    return {"thread": thread, "scopes": list(scopes), "target": None, "findings": [verdict]}


def ledger(
    word: str = "scheduling-bound", stage: str = "asr", pids: tuple[int, ...] = (7,)
) -> dict[str, Any]:
    held = {"stage": stage, "share": 0.5, "hop_share": 0.0, "work_share": 0.4}
    run = {
        "run": "r",
        "word": word,
        "concurrency": None,
        "in_flight": 5.0,
        "requests": {"complete": 80},
        "waiting": [held, {"stage": "z", "share": 0.1, "hop_share": 0.0, "work_share": 0.1}],
        "pids": {stage: list(pids)},
    }
    verdict = {"kind": "verdict", "strength": "medium", "rule": "clean"}
    return {"run": "r", "runs": [run], "findings": [verdict]}


def sides(of_ledger: dict[str, Any], of_stacks: dict[str, Any], apart_s: float | None = 0.0) -> Sides:
    if apart_s is None:
        return Sides(of_ledger, of_stacks)
    later = NOW + timedelta(seconds=apart_s)
    return Sides(of_ledger, of_stacks, (NOW - timedelta(seconds=20), NOW), (later, later))


def joined(of_ledger: dict[str, Any], of_stacks: dict[str, Any], apart_s: float | None = 0.0) -> Joined:
    found = join(sides(of_ledger, of_stacks, apart_s))
    assert found is not None
    return found


def test_the_thread_that_bears_the_stages_name_is_joined_with_its_lines() -> None:
    both = sides(ledger(), stacks(scope("gauges", 7), scope("asr in run", 7)))
    found = joined(both.ledger, both.stacks)  # type: ignore[arg-type]
    assert (found.stage, found.thread, found.doubt, found.why_not) == ("asr", "asr in run", "", "")
    finding = finding_of(found, both)
    assert finding is not None and finding.strength is Strength.MEDIUM  # the weaker of both
    assert "ledger medium" in finding.rule and "stacks strong" in finding.rule
    assert "requests wait for asr for 50.0 %" in finding.statement
    assert "queue.py:171 get 80.0 % [70.0, 90.0], waits for queue" in finding.statement
    assert "the thread itself waits" in finding.recommendation


def test_a_stage_that_works_names_its_line_first() -> None:
    found = joined(ledger("stage-bound"), stacks(scope("asr", 7, wait="")))
    finding = finding_of(found, sides(ledger("stage-bound"), stacks(scope("asr", 7, wait=""))))
    assert "asr works for 40.0 %" in found.ledger and finding is not None
    assert finding.recommendation.startswith("queue.py:171 get first")


@pytest.mark.parametrize(
    ("of_ledger", "of_stacks", "apart_s", "why"),
    [
        (ledger(pids=(7,)), stacks(scope("asr", 9)), 0.0, "process 7 logs asr, process 9 was sampled"),
        (ledger(pids=()), stacks(scope("asr", 7)), 0.0, "name no process"),
        (ledger(), stacks(scope("asr")), 0.0, "the captures name no process"),
        (ledger(), stacks(scope("a", 7), scope("b", 7)), 0.0, "no thread bears the name of asr"),
        (ledger(), stacks(scope("asr 1", 7), scope("asr 2", 7)), 0.0, "several threads could serve asr"),
        (ledger(), stacks(scope("asr", 7)), 7200.0, "2.0 hours apart"),
    ],
)
def test_where_no_thread_can_be_named_the_reason_is_told(
    of_ledger: dict[str, Any], of_stacks: dict[str, Any], apart_s: float, why: str
) -> None:
    found = joined(of_ledger, of_stacks, apart_s)
    assert why in found.why_not and found.thread == ""
    assert "no thread can be named, because" in statement_of(found)
    assert finding_of(found, sides(of_ledger, of_stacks, apart_s)) is None


def test_a_loop_that_is_not_named_after_the_stage_makes_a_weak_finding() -> None:
    both = (ledger(), stacks(scope("MainThread", 7), loop=True))
    found = joined(*both)
    finding = finding_of(found, sides(*both))
    assert found.thread == "MainThread" and finding is not None and finding.strength is Strength.WEAK
    assert "not named after it" in finding.rule


def test_captures_that_do_not_say_when_make_a_weak_finding() -> None:
    both = (ledger(), stacks(scope("asr", 7)))
    finding = finding_of(joined(*both, None), sides(*both, None))
    assert finding is not None and finding.strength is Strength.WEAK and "not told" in finding.rule


def test_stages_of_the_bundled_engine_that_share_a_thread_are_known() -> None:
    found = joined(ledger(stage="prefill"), stacks(scope("decode", 7), scope("encoder", 7)))
    assert found.thread == "decode" and "known to serve prefill" in found.by


@pytest.mark.parametrize(
    ("completed", "in_flight", "joins"),
    [(None, None, False), (0, 0.0, False), (0, None, False), (12, None, True), (0, 3.0, True)],
)
def test_a_recording_in_which_nobody_saw_a_request_is_joined_with_no_ledger(
    completed: int | None, in_flight: float | None, joins: bool
) -> None:
    load = {"source": "s", "completed": completed, "in_flight_mean": in_flight, "cpu_share": 0.2}
    recorded = {"attempts": [{"load": load}, {"load": None}]}
    found = joined(ledger(), {**stacks(scope("asr", 7)), "recording": recorded})
    assert (found.thread == "asr") is joins
    assert ("nobody saw a request" in found.why_not) is not joins


def test_a_target_that_perfkit_recorded_stands_for_scopes_without_process() -> None:
    of_stacks = {**stacks(scope("asr")), "target": {"pid": 7, "namespace_pid": 7}}
    assert joined(ledger(), of_stacks).thread == "asr"


@pytest.mark.parametrize("word", ["balanced", "undecided"])
def test_nothing_is_joined_where_no_stage_holds_requests(word: str) -> None:
    assert join(sides(ledger(word), stacks(scope("asr", 7)))) is None
    assert join(sides(ledger(), {**stacks(scope("asr", 7)), "thread": None})) is None


def captures(folder: Path, pid: int = 7) -> list[str]:
    """Three of a server whose `asr` thread waits for a queue."""
    made = []
    for number in range(3):
        seen: tuple[Stack, ...] = (
            stack("run engine.py 3;get queue.py 171;wait threading.py 327", 400, ASR, pid),
            stack("run engine.py 3;burn engine.py 14", 99, ASR, pid),
            stack("watch engine.py 9", 499, OTHER, pid),
        )
        path = write_raw(folder / f"idle_{number}.raw", seen)
        Path(path).with_suffix(".log").write_text(said(998, name=path), encoding="utf-8")
        made.append(path)
    return made


def test_layer2_tells_of_the_ledger_of_its_investigation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ("--investigation", str(tmp_path / "i"))
    events = written(tmp_path / "e.jsonl", asr_run(80, queue=100.0))
    alone = document(capsys, "layer2", *captures(tmp_path), *folder)
    assert alone.get("joined") is None
    run(capsys, "stages", events, *folder)
    _, out, _ = run(capsys, "layer2", *captures(tmp_path), *folder)
    told = " ".join(out.split())
    assert "requests wait for asr for 53.2 % of their time" in told and "together" not in told
    assert "threading.py:327 wait" in told
    with Investigation.open(tmp_path / "i", create=False) as opened:
        last = opened.runs()[-1]
        found = [f.finding for f in opened.findings() if f.run_id == last.id]
    (together,) = [finding for finding in found if "its thread" in finding.statement]
    assert last.document["joined"]["thread"] == "asr in run, process 7"
    assert together.strength is Strength.WEAK
    report = report_of(tmp_path / "i", commands=("stages", "layer2"))
    assert faults(report) == [] and "its thread asr in run" in render(report, lambda figure: figure.name)


def test_a_ledger_tells_of_the_stacks_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ("--investigation", str(tmp_path / "i"))
    run(capsys, "layer2", *captures(tmp_path), *folder)
    made = document(capsys, "stages", written(tmp_path / "e.jsonl", asr_run(80, queue=100.0)), *folder)
    assert made["joined"]["thread"] == "asr in run, process 7"


def test_another_server_is_not_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ("--investigation", str(tmp_path / "i"))
    run(capsys, "stages", written(tmp_path / "e.jsonl", asr_run(80, queue=100.0)), *folder)
    _, out, _ = run(capsys, "layer2", *captures(tmp_path, pid=9), *folder, "--no-record")
    assert "no thread can be named, because" in " ".join(out.split())
    made = document(capsys, "layer2", *captures(tmp_path, pid=9), *folder)
    assert "another server" in made["joined"]["why_not"] and made["joined"]["thread"] is None
    assert not any("its thread" in finding["statement"] for finding in made["findings"])


def test_a_folder_that_is_no_investigation_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "i").mkdir()
    made = document(capsys, "layer2", *captures(tmp_path), "--investigation", str(tmp_path / "i"))
    assert made["thread"] and made.get("joined") is None
