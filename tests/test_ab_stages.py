"""Amdahl's bound on a claim comes from a stage ledger: of A's runs, of files of events, or as declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from layers.evidence.guard import Effect
from layers.layer3_sweep.model import ServerUse, Timing
from layers.layer4_ab.analyse import Beside
from layers.layer4_ab.stage_share import shares_of_ledger, stages_of_arms
from parsers.errors import UnreadableInput, UsageError
from perfkit.cli.ab_options import stage_of
from tests.ab_builders import analysed, arm_a, arm_b, fired, judged
from tests.command_runs import document
from tests.stage_builders import asr_run, written
from tests.sweep_builders import latency
from tests.test_ab_command import both


def told(e2e_ms: float = 100.0, **stage_ms: float) -> dict[str, Any]:
    """A run whose server tells its stages; `vocoder_queue` is the stage "vocoder queue"."""
    stages = {name.replace("_", " "): ms for name, ms in stage_ms.items()}
    return {"timings": {Timing.E2E: latency(e2e_ms)}, "stage_ms": stages}


A = told(decode=50.0, vocoder_queue=6.0, vocoder=8.0)
B = told(80.0, decode=34.0, vocoder_queue=2.0, vocoder=7.0)


def test_a_gain_beyond_what_the_runs_of_a_say_of_the_stage_is_refused() -> None:
    found = analysed(arm_a(runs=A), arm_b(by=1.30, runs=B), stage="vocoder")
    assert found.stage is not None and found.stage.share == pytest.approx(0.14)
    refused = fired(found)["gain-beyond-the-stage"]
    assert refused.effect is Effect.VOID
    assert "14.0 % of the time (by the server's own account in 4 runs of A)" in refused.message
    assert "gain-beyond-the-stage" not in fired(
        analysed(arm_a(runs=A), arm_b(by=1.30, runs=B), stage="decode")
    )


def test_what_it_unblocked_explains_a_gain_beyond_the_stage() -> None:
    a = arm_a(runs=A, counters={"graph_replays_total": 0.0})
    b = arm_b(by=1.30, runs=B, counters={"graph_replays_total": 900.0})
    explained = fired(analysed(a, b, stage="vocoder", unblocked=("graph_replays",)))["gain-beyond-the-stage"]
    assert explained.effect is Effect.NOTE and "it unblocked graph_replays: 0 → 900" in explained.message
    ran_before = arm_a(runs=A, counters={"graph_replays_total": 5.0})
    still = fired(analysed(ran_before, b, stage="vocoder", unblocked=("graph_replays",)))
    assert still["gain-beyond-the-stage"].effect is Effect.VOID


def test_pk536_a_stage_that_nothing_tells_is_no_bound_and_said() -> None:
    untold = fired(analysed(stage="vocoder"))["stage-share-untold"]
    assert untold.message == "vocoder: no run of A tells its stages"
    other = fired(analysed(arm_a(runs=A), stage="encoder"))["stage-share-untold"]
    assert other.message == "encoder: the stages of A are decode; vocoder; vocoder queue"
    assert "stage-share-untold" not in fired(analysed(arm_a(runs=A), stage="decode"))
    assert "stage-share-untold" not in fired(analysed())


def test_a_ledger_of_events_tells_the_share(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", asr_run(80))
    shares, where = shares_of_ledger([path])
    assert where.startswith("the ledger of r (") and 0.9 < shares["asr"] <= 1.0
    beside = Beside(ledger={"vocoder": 0.10}, ledger_of=where)
    refused = fired(analysed(b=arm_b(by=1.30), stage="vocoder", beside=beside))["gain-beyond-the-stage"]
    assert where in refused.message
    with pytest.raises(UsageError, match="--stage encoder: the ledger of r"):
        analysed(stage="encoder", beside=beside)


def test_a_ledger_without_a_complete_request_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", asr_run(1)[:3])
    with pytest.raises(UnreadableInput, match="no run with a complete request"):
        shares_of_ledger([path])


def test_where_the_change_took_place_is_told_stage_by_stage() -> None:
    found = analysed(arm_a(runs=A), arm_b(runs=B))
    a, b = ([one for one in found.rounds if one.arm == arm] for arm in ("a", "b"))
    rows = stages_of_arms(a, b)
    assert [(r["stage"], r["a_ms"], r["b_ms"]) for r in rows] == [
        ("decode", 50.0, 34.0),
        ("vocoder", 8.0, 7.0),
        ("vocoder queue", 6.0, 2.0),
    ]
    assert rows[0]["a_share"] == pytest.approx(0.5)
    assert judged().sections["stages"] == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [(None, ("", None)), ("vocoder", ("vocoder", None)), ("vocoder=0.14", ("vocoder", 0.14))],
)
def test_a_stage_is_a_name_with_or_without_its_share(
    text: str | None, meant: tuple[str, float | None]
) -> None:
    assert stage_of(text) == meant


@pytest.mark.parametrize("text", ["vocoder=", "=0.2", "vocoder=1.5", ""])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="say NAME, or NAME=SHARE"):
        stage_of(text)


def test_the_command_takes_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "e.jsonl", asr_run(80))
    made = document(capsys, "ab", *both(tmp_path, 1.05), "--stage", "asr", "--ledger", log, "--no-record")
    assert made["stage"]["stage"] == "asr" and made["stage"]["share"] > 0.9
    assert made["verdict"]["word"] == "improvement"


def cached(share: float) -> dict[str, Any]:
    return {"server": ServerUse(8.0, 0.0, None, 0.0, share, 10)}


def test_pk539_hits_of_a_cache_skip_a_stage_and_are_told() -> None:
    alike = fired(analysed(arm_a(runs=cached(0.9)), arm_b(runs=cached(0.92))))["cache-answered"]
    assert alike.effect is Effect.NOTE and "90.0 % of look-ups of A and 92.0 % of B" in alike.message
    apart = analysed(arm_a(runs=cached(0.1)), arm_b(by=1.2, runs=cached(0.9)))
    assert fired(apart)["cache-answered"].effect is Effect.DIRECTIONAL
    meant = analysed(arm_a(runs=cached(0.0)), arm_b(by=1.2, runs=cached(0.9)), variable="encoder_cache")
    assert fired(meant)["cache-answered"].effect is Effect.NOTE
    assert "cache-answered" not in fired(analysed(arm_a(runs=cached(0.0)), arm_b(runs=cached(0.0))))
    assert "cache-answered" not in fired(analysed(arm_a(), arm_b(runs=cached(0.9))))
