"""Guards on the stage ledger: each fires on its trap and not without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layers.evidence.guard import Checked, Effect, Outcome
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.stages.guard_checks import SILENCE_MS
from layers.stages.guards import CLOCK_BACK, CLOCKS_DIFFER, FILE_GUARDS, RUN_GUARDS, SHED_APART, SILENCE
from layers.stages.pairing import RACE_NS
from layers.stages.requests import OVERTAKEN_BY, SHED_STATUS
from parsers.stage_events import CLOCK_STEP_NS
from tests.stage_builders import Line, asr_request, asr_run, judged, line, plain_csv, written
from tests.writers.load_results import table, tables
from tests.writers.load_results import written as written_json


def checked(result: Result, code: str) -> Checked:
    """What one guard said of the run of the verdict."""
    run = result.sections["run"]
    return next(g for g in result.guards if g.code == code and g.scope in ("", run))


def of(path: Path, lines: list[Line], code: str) -> Checked:
    return checked(judged(written(path / "e.jsonl", lines)), code)


def test_a_sound_run_fires_nothing_and_concludes(tmp_path: Path) -> None:
    result = judged(written(tmp_path / "e.jsonl", asr_run(40)))
    assert [g.code for g in result.guards if g.fired] == []
    assert result.verdict.word == "stage-bound" and result.verdict.exit_code is Exit.OK
    codes = {*(g.code for g in FILE_GUARDS), *(g.code for g in RUN_GUARDS)}
    assert {g.code for g in result.guards} == codes


def test_texts_have_the_numbers_that_decide() -> None:
    assert f"more than {CLOCK_STEP_NS / 1e6:g} ms before" in CLOCK_BACK.detection
    assert f"more than {RACE_NS / 1e6:g} ms before" in CLOCKS_DIFFER.detection
    assert f"while {OVERTAKEN_BY} later ones" in SHED_APART.detection
    assert all(status in SHED_APART.detection for status in SHED_STATUS)
    assert SILENCE.detection.startswith(f"More than {SILENCE_MS / 1000:g} s")


def test_pk400_no_request_is_complete(tmp_path: Path) -> None:
    result = judged(
        written(tmp_path / "e.jsonl", [*asr_request("q")[:5], line("q", "asr", "stage_hop_sent", 80)])
    )
    assert result.verdict.word == "void" and result.verdict.exit_code is Exit.INVALID
    assert result.findings == [] and checked(result, "PK400").effect is Effect.VOID


def test_pk401_few_requests_only_hint(tmp_path: Path) -> None:
    assert of(tmp_path, asr_run(19), "PK401").fired and not of(tmp_path, asr_run(20), "PK401").fired
    result = judged(written(tmp_path / "e.jsonl", asr_run(19)))
    assert result.verdict.directional and result.verdict.exit_code is Exit.NO_CONCLUSION


def test_pk402_a_residual_is_directional_only_where_it_can_change_the_verdict(tmp_path: Path) -> None:
    def run(first: float, decode: float) -> Checked:
        lines = [
            one
            for one in asr_run(30, first=first, decode=decode, queue=40.0)
            if one["event_name"] != "scheduler_queue_enter"
        ]
        return of(tmp_path, lines, "PK402")

    big, harmless = run(20, 10), run(80, 120)
    assert big.fired and big.effect is Effect.DIRECTIONAL and "could pass 40 %" in big.message
    assert harmless.fired and harmless.effect is Effect.NOTE
    assert not of(tmp_path, asr_run(30), "PK402").fired


def test_pk403_several_runs(tmp_path: Path) -> None:
    found = of(tmp_path, [*asr_run(20, run="a"), *asr_run(30, 5, run="b")], "PK403")
    assert found.fired and "2 runs: a; b; the verdict is of b" in found.message
    assert not of(tmp_path, asr_run(20), "PK403").fired


def test_pk404_a_clock_that_goes_back(tmp_path: Path) -> None:
    lines = asr_run(40)
    path = tmp_path / "e.jsonl"
    written(path, lines)
    rows = path.read_text("utf-8").splitlines()
    rows.insert(5, rows.pop(200))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = checked(judged(str(path)), "PK404")
    assert found.fired and found.effect is Effect.DIRECTIONAL and "go back 1 times" in found.message
    assert not of(tmp_path, lines, "PK404").fired


def hops(late_ms: float) -> list[Line]:
    made = asr_run(30)
    for n in range(30):
        made += [line(f"r{n}", "asr", "stage_hop_sent", n * 20 + 99, to_stage="b")]
        made += [line(f"r{n}", "b", "stage_input_received", n * 20 + 99 + late_ms, from_stage="asr")]
        made += [line(f"r{n}", "b", "stage_complete", n * 20 + 99.5)]
    return made


def test_pk405_clocks_of_two_hosts(tmp_path: Path) -> None:
    found = of(tmp_path, hops(-60), "PK405")
    assert found.fired and "30 hops" in found.message
    assert not of(tmp_path, hops(-5), "PK405").fired and not of(tmp_path, hops(0.2), "PK405").fired


def test_pk405_a_clock_that_is_ahead_makes_no_queue(tmp_path: Path) -> None:
    """The coordinator's host is 300 ms behind: the way there looks long, the way back negative."""
    behind_ns = 300_000_000
    lines = [
        {**one, "timestamp_ns": one["timestamp_ns"] - behind_ns} if one["stage"] == "coordinator" else one
        for one in asr_run(40)
    ]
    result = judged(written(tmp_path / "e.jsonl", lines))
    found = checked(result, "PK405")
    assert found.fired and found.effect is Effect.DIRECTIONAL and "the same difference" in found.message
    assert result.verdict.directional or result.verdict.word == "undecided"


def test_pk406_cut_requests(tmp_path: Path) -> None:
    one_cut = [*asr_run(30), *asr_request("x", 590)[:5]]
    unanswered = [one for n in range(10) for one in asr_request(f"x{n}", 300 + n)[:-1]]
    few, many = of(tmp_path, one_cut, "PK406"), of(tmp_path, [*asr_run(30), *unanswered], "PK406")
    assert few.fired and few.effect is Effect.NOTE and "1 of 31 requests" in few.message
    assert many.fired and many.effect is Effect.DIRECTIONAL
    assert not of(tmp_path, asr_run(30), "PK406").fired


def test_pk407_shed_requests_are_no_waiting_ones(tmp_path: Path) -> None:
    refused = [
        line("x", "coordinator", "request_admission", 5),
        line("x", "coordinator", "terminal_response", 6, status=503),
    ]
    result = judged(written(tmp_path / "e.jsonl", [*asr_run(30), *refused]))
    assert checked(result, "PK407").fired and result.sections["shed"] == 1
    assert any("1 of 31 requests were refused" in f.statement for f in result.findings)
    assert not of(tmp_path, asr_run(30), "PK407").fired


def test_pk408_a_queue_that_grows_is_not_steady(tmp_path: Path) -> None:
    grows = [one for n in range(80) for one in asr_request(f"q{n}", n * 20.0, queue=float(40 * n))]
    found = of(tmp_path, grows, "PK408")
    assert found.fired, found.message
    assert not of(tmp_path, asr_run(80), "PK408").fired


def test_pk409_lost_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    for bad, effect in ((1, Effect.NOTE), (30, Effect.DIRECTIONAL)):
        written(path, asr_run(40))
        path.write_text(path.read_text("utf-8") + "broken\n" * bad, encoding="utf-8")
        found = checked(judged(str(path)), "PK409")
        assert found.fired and found.effect is effect
    assert not of(tmp_path, asr_run(40), "PK409").fired


def test_pk410_one_request_at_a_time_has_nobody_to_wait_behind(tmp_path: Path) -> None:
    assert of(tmp_path, asr_run(20, 100), "PK410").fired
    assert not of(tmp_path, asr_run(20, 40), "PK410").fired


def test_pk411_hops_that_hold_requests(tmp_path: Path) -> None:
    assert of(tmp_path, asr_run(30, hand_over=30.0), "PK411").fired
    assert not of(tmp_path, asr_run(30, hand_over=3.0), "PK411").fired


def test_pk412_the_first_output_ends_prefill(tmp_path: Path) -> None:
    old = [one for n in range(20) for one in asr_request(f"q{n}", n * 20, ends_prefill=False)]
    assert of(tmp_path, old, "PK412").fired and not of(tmp_path, asr_run(20), "PK412").fired


def test_pk413_unknown_events(tmp_path: Path) -> None:
    odd = [*asr_run(20), line("r0", "asr", "tea_was_made", 50)]
    found = of(tmp_path, odd, "PK413")
    assert found.fired and "tea_was_made (1)" in found.message
    assert not of(tmp_path, asr_run(20), "PK413").fired


def test_pk414_a_table_has_means_alone(tmp_path: Path) -> None:
    made = table(
        "ledger",
        "conc | queued→scheduled | decode | total",
        "8 | 10 ms | 85 ms | 100 ms",
        "16 | 120 ms | 80 ms | 210 ms",
    )
    result = judged(written_json(tmp_path / "t.json", tables(made)))
    assert checked(result, "PK414").fired and result.verdict.word == "scheduling-bound"
    assert not of(tmp_path, asr_run(20), "PK414").fired


@pytest.mark.parametrize(("pause_ms", "fires"), [(3000.0, True), (300.0, False)])
def test_pk415_a_silence_while_a_request_is_in_the_service(
    pause_ms: float, fires: bool, tmp_path: Path
) -> None:
    lines = asr_run(30)
    for one in lines:
        if one["timestamp_ns"] > lines[0]["timestamp_ns"] + 301 * 10**6:
            one["timestamp_ns"] += round(pause_ms * 1e6)
    assert of(tmp_path, lines, "PK415").fired is fires


def test_every_guard_weakens_nothing_that_it_does_not_fire_on(tmp_path: Path) -> None:
    """A message for the clear case, too: --json lists what was looked at."""
    result = judged(written(tmp_path / "e.jsonl", asr_run(40)))
    assert all(g.message.strip() and json.dumps(g.message) for g in result.guards)
    assert Outcome(False, "").effect is None


def test_a_plain_log_is_judged_by_the_same_guards(tmp_path: Path) -> None:
    rows = [
        f"{n},a,{e},{n * 10 + at}" for n in range(40) for e, at in (("enter", 0), ("start", 30), ("end", 45))
    ]
    result = judged(plain_csv(tmp_path / "l.csv", rows))
    assert result.verdict.word == "scheduling-bound" and result.verdict.exit_code is Exit.OK
    assert [g.code for g in result.guards if g.fired] == []


def again_later(first: str, later: str, after_ms: float = 60_000.0) -> list[Line]:
    """Two loads of one run id, with ids that begin so."""
    loads = ((first, 0.0), (later, after_ms))
    return [one for name, at in loads for n in range(30) for one in asr_request(f"{name}{n}", at + n * 20)]


def test_pk416_two_loads_under_one_run_id_have_the_load_of_one(tmp_path: Path) -> None:
    lines = again_later("a", "b")
    found = of(tmp_path, lines, "PK416")
    assert found.fired and "97.8 % of the run" in found.message and "0.0989 in flight" in found.message
    result = judged(written(tmp_path / "e.jsonl", lines))
    assert not checked(result, "PK410").fired and result.verdict.word == "stage-bound"
    assert not of(tmp_path, asr_run(30), "PK416").fired


def test_pk417_an_id_that_comes_again_is_another_request(tmp_path: Path) -> None:
    found = of(tmp_path, again_later("a", "a"), "PK417")
    assert found.fired and "30 requests" in found.message
    result = judged(written(tmp_path / "e.jsonl", again_later("a", "a")))
    (run,) = result.sections["runs"]
    assert (run["requests"]["complete"], run["e2e_ms"]["mean"]) == (60, 100)
    assert not of(tmp_path, again_later("a", "b"), "PK417").fired


def overlapping(ids: int, own: int = 0) -> list[Line]:
    """Requests of 100 ms, one each 20 ms, which share so few ids; then as many with an id of their own."""
    shared = [one for n in range(40) for one in asr_request(f"u{n % ids}", n * 20)]
    return shared + [one for n in range(own) for one in asr_request(f"own{n}", 1000 + n * 20)]


def test_pk417_ids_of_two_requests_under_way_give_no_times(tmp_path: Path) -> None:
    """Paired by guess, four ids would make 20 ms of each request that takes 100."""
    result = judged(written(tmp_path / "e.jsonl", overlapping(4)))
    assert result.verdict.word == "void" and "40 share an id with another that was under way" in (
        result.verdict.because
    )
    some = judged(written(tmp_path / "f.jsonl", overlapping(4, own=60)))
    found = checked(some, "PK417")
    assert found.fired and found.effect is Effect.DIRECTIONAL and "40 of 100 left out" in found.message
    (run,) = some.sections["runs"]
    assert (run["requests"]["complete"], run["e2e_ms"]["mean"]) == (60, 100)
    apart = of(tmp_path, overlapping(8), "PK417")
    assert apart.fired and apart.effect is Effect.NOTE and "left out" not in apart.message


def test_pk417_one_that_was_given_up_and_tried_again_is_a_note(tmp_path: Path) -> None:
    given_up = asr_request("own3", 1030)[:4]
    found = of(tmp_path, overlapping(40, own=60) + given_up, "PK417")
    assert found.fired and found.effect is Effect.NOTE and "2 of 101 left out" in found.message


def test_pk417_a_file_given_twice_gives_no_times(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, asr_run(30)) for name in ("a.jsonl", "b.jsonl")]
    assert judged(*paths).verdict.word == "void"


def test_pk417_without_a_coordinator_an_answered_request_may_come_again(tmp_path: Path) -> None:
    lines = [one for one in again_later("a", "a") if one["stage"] != "coordinator"]
    found = of(tmp_path, lines, "PK417")
    assert found.fired and "30 requests" in found.message


@pytest.mark.parametrize("ids", [8, 40])
def test_pk417_without_a_coordinator_ids_of_two_requests_in_one_stage_give_no_times(
    ids: int, tmp_path: Path
) -> None:
    """One each 3 ms, 60 ms each: with less than 20 ids two bear the same one at a time."""
    moments = (("enter", 0), ("start", 1), ("end", 60))
    rows = [f"u{n % ids},decode,{event},{n * 3 + at}" for n in range(400) for event, at in moments]
    result = judged(plain_csv(tmp_path / "l.csv", rows))
    assert (result.verdict.word == "void") is (ids < 20)
    assert ("share an id with another that was under way" in result.verdict.because) is (ids < 20)


def test_pk417_several_visits_of_one_stage_are_one_request(tmp_path: Path) -> None:
    rows = [
        f"{n},s,{event},{n * 40 + at}"
        for n in range(25)
        for event, at in (("start", 0), ("end", 5), ("start", 10), ("end", 15))
    ]
    assert not checked(judged(plain_csv(tmp_path / "l.csv", rows)), "PK417").fired


def test_pk415_a_clock_that_is_set_forward_concludes_nothing(tmp_path: Path) -> None:
    """An hour forward in the middle: the five requests of that moment have all of the time there is."""
    hour_ns, lines = 3600 * 10**9, asr_run(60, queue=30.0)
    middle = sorted(one["timestamp_ns"] for one in lines)[len(lines) // 2]
    jumped = [
        {**one, "timestamp_ns": one["timestamp_ns"] + hour_ns * (one["timestamp_ns"] > middle)}
        for one in lines
    ]
    result = judged(written(tmp_path / "e.jsonl", jumped))
    found = checked(result, "PK415")
    assert found.fired and found.effect is Effect.DIRECTIONAL and "of the time of requests" in found.message
    assert result.verdict.exit_code is Exit.NO_CONCLUSION
    assert not of(tmp_path, lines, "PK415").fired
