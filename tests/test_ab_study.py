"""The study of the engine's switches: its steps, its plan, and what it makes of what was recorded."""

from __future__ import annotations

import re
import threading
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.finding import FindingKind
from layers.evidence.verdict import Exit
from layers.layer4_ab.study.analyse import analysed
from layers.layer4_ab.study.evidence import ledger_of, places_of
from layers.layer4_ab.study.folder import Asked, left_to_do, new_folder, read_study, write_study
from layers.layer4_ab.study.jobs import Job, Kind, beside, jobs_of, planned_text
from layers.layer4_ab.study.judge import judge_study
from layers.layer4_ab.study.rounds import Rounds
from layers.layer4_ab.study.steps import Configuration, Way, configurations, steps
from layers.layer4_ab.study.studies import OPTIMIZATIONS, QUICK, STUDIES, study_named
from layers.layer4_ab.study.switches import ENGINE_SWITCHES, HOST_POINTS, SPEECH
from parsers.errors import InvalidMeasurement, UnreadableInput, UsageError
from perfkit.cli.ab_study import Wanted, Work
from perfkit.cli.ab_study_view import show_ab_study
from sample_engine.config.switches import BASELINE, OPTIMIZED, Switches, refusals
from sample_engine.observe.catalogue import METRICS
from tests.ab_study_builders import FOUR, asked, counters, found, judged, seen, timed, usual
from tests.conftest import REPOSITORY

BOTH = (OPTIMIZATIONS, QUICK)


def entry(name: str, **other: Any) -> dict[str, Any]:
    """A step of the document."""
    made: dict[str, Any] = judged(**other).sections["study"]
    found_steps: list[dict[str, Any]] = [one for one in made["steps"] if one["step"] == name]
    (step,) = found_steps
    return step


def test_the_table_of_switches_is_that_of_the_engine() -> None:
    assert sorted(one.name for one in ENGINE_SWITCHES) == sorted(one.name for one in fields(Switches))
    words = {True: "on", False: "off"}
    for values, side in ((BASELINE, "off"), (OPTIMIZED, "on")):
        told = {name: words.get(value, value) for name, value in asdict(values).items()}
        assert {one.name: getattr(one, side) for one in ENGINE_SWITCHES} == told
    known = {metric.name: metric for metric in METRICS}
    for switch in ENGINE_SWITCHES:
        for counter in (switch.ran, *switch.unblocks, *switch.costs):
            name, _, label = counter.partition("{")
            assert name in known and (not label or label.split('"')[1] in known[name].values), counter


def test_what_a_switch_is_said_to_need_is_what_the_engine_refuses_without() -> None:
    refused = {one.split()[0] for one in refusals(replace(OPTIMIZED, radix_key="host"))}
    assert {one.name for one in ENGINE_SWITCHES if one.needs == {"radix_key": "device"}} == refused
    assert all(set(one.needs) <= {"radix_key"} for one in ENGINE_SWITCHES)


def test_every_wait_and_copy_out_inside_a_stage_is_in_the_table_of_what_blocks() -> None:
    stages = (REPOSITORY / "sample_engine" / "stages").glob("*.py")
    waits = re.compile(r"\.copy_out\(|\.synchronize\(\)")
    there = {f"sample_engine/stages/{file.name}" for file in stages if waits.search(file.read_text())}
    named = {path for one in HOST_POINTS for path in re.findall(r"sample_engine/\S+?\.py", one.where)}
    assert there <= named and len(there) >= 5
    assert all((REPOSITORY / path).is_file() for path in named)


@pytest.mark.parametrize("study", BOTH)
def test_a_step_changes_one_switch_and_has_what_it_needs(study: Any) -> None:
    switches = {one.name: one for one in study.switches}
    for step in steps(study):
        if step.way is Way.WHOLE:
            assert len(step.changed) == 4 and (step.a.name, step.b.name) == ("baseline", "optimized")
            continue
        switch = switches[step.switch]
        assert step.changed == [switch.name]
        assert (step.a.settings[switch.name], step.b.settings[switch.name]) == (switch.off, switch.on)
        assert switch.needs.items() <= step.b.settings.items()
    ways = {name: {s.way for s in steps(study) if s.switch == name} for name in switches}
    assert all(one in ({Way.LADDER, Way.LEFT_OUT}, {Way.BOTH}) for one in ways.values())


def test_no_configuration_is_measured_twice_and_each_is_of_use() -> None:
    made = configurations(OPTIMIZATIONS)
    assert len({(one.load, *one.settings.items()) for one in made}) == len(made) == 14
    used = [arm for step in steps(OPTIMIZATIONS) for arm in (step.a, step.b)]
    assert all(one in used for one in made)


@pytest.mark.parametrize("study", BOTH)
def test_a_study_has_something_of_everything_before_it_goes_on(study: Any) -> None:
    jobs = jobs_of(study)
    order = [job.kind if job.kind is not Kind.ROUND else job.number for job in jobs]
    told = list(dict.fromkeys(order))
    assert told == [1, 2, Kind.EVIDENCE, Kind.ANSWERS, *range(3, study.rounds + 1)]
    assert len({job.name for job in jobs}) == len(jobs)
    of_round = {n: [c.key for job in jobs if job.number == n for c in job.cells] for n in (1, 2)}
    assert of_round[2] == of_round[1][::-1] and len(of_round[1]) == 14
    assert all((len(job.cells) == 1) is study.fresh for job in jobs if job.kind is Kind.ROUND)


def test_the_plan_says_runs_starts_and_minutes() -> None:
    said = planned_text(QUICK, jobs_of(QUICK))
    assert "42 timed runs of 2.5 s" in said and "24 starts of the engine" in said
    minutes = {one.name: sum(job.about_s for job in jobs_of(one)) / 60 for one in BOTH}
    assert minutes["optimizations:quick"] < 13 and 30 < minutes["optimizations"] < 65
    assert "to do: 0 timed runs" in planned_text(QUICK, [])


def test_the_quick_form_looks_closely_at_each_switch_left_out_alone() -> None:
    for load in QUICK.loads:
        looked = [one.name for one in beside(QUICK, load)]
        assert looked[0] == "optimized" and "baseline" not in looked
        assert {one.name for one in beside(OPTIMIZATIONS, load)} >= set(looked)
    assert places_of(QUICK, SPEECH)["ar"][:3] == ["frame_keys.py", "launch", "staging.py"]


def test_a_study_is_named_or_refused() -> None:
    assert study_named("optimizations:quick") is STUDIES["optimizations:quick"]
    with pytest.raises(UsageError, match="there are optimizations, optimizations:quick"):
        study_named("everything")


def wanted(**other: Any) -> Wanted:
    usual_ones: dict[str, Any] = {"rounds": None, "seconds": None, "minutes": None, "resume": False}
    return Wanted("optimizations:quick", **{**usual_ones, "common": {}, **other})


def test_options_change_rounds_seconds_and_what_all_share() -> None:
    made = wanted(rounds=5, seconds=9.0, common={"size": "tiny"}).study()
    assert (made.rounds, made.seconds) == (5, 9.0)
    (speech, *_) = made.loads
    assert "--set=size=tiny" in (made.subject(speech).engine or ())
    assert made.answers(speech) == speech.answers["tiny"] != QUICK.answers(speech)
    with pytest.raises(UsageError, match="the study itself switches it"):
        wanted(common={"lookahead": "off"}).study()
    with pytest.raises(UsageError, match="2 rounds or more"):
        wanted(rounds=1).study()


def test_a_study_is_kept_as_it_was_asked_for(tmp_path: Path) -> None:
    folder, study = new_folder(tmp_path), wanted(rounds=5, common={"size": "tiny"}).study()
    write_study(folder, study)
    assert read_study(folder) == study and Asked("nothing", 1, 1.0).rounds == 1
    assert left_to_do(folder, study) == [*jobs_of(study)]


class Doing:
    """Does jobs by writing their names down; one of them may fail."""

    def __init__(self, fails: str = "", seconds: float = 1.0) -> None:
        self.done: list[str] = []
        self.fails, self.seconds, self.now = fails, seconds, 0.0

    def __call__(self, job: Job) -> str:
        self.now += self.seconds
        if job.name == self.fails:
            raise InvalidMeasurement("the server is gone")
        self.done.append(job.name)
        return ""

    def work(self, folder: Path, told: threading.Event | None = None, budget_s: float | None = None) -> str:
        do = dict.fromkeys(Kind, self)
        return Work(QUICK, folder, told or threading.Event(), budget_s, do, lambda: self.now).run()


def test_all_jobs_are_done_in_their_order(tmp_path: Path) -> None:
    doing = Doing()
    assert doing.work(tmp_path) == "" and doing.done == [job.name for job in jobs_of(QUICK)]


def test_no_job_begins_that_would_end_behind_the_budget(tmp_path: Path) -> None:
    first, second, *_ = jobs_of(QUICK)
    doing = Doing(seconds=first.about_s)
    why = doing.work(tmp_path, budget_s=first.about_s + second.about_s - 1)
    assert doing.done == [first.name] and why.startswith(second.text) and "budget" in why


def test_a_study_ends_where_it_is_told_to_and_where_a_job_fails(tmp_path: Path) -> None:
    told = threading.Event()
    told.set()
    doing = Doing()
    assert (doing.work(tmp_path, told), doing.done) == ("it was told to end", [])
    third = jobs_of(QUICK)[2]
    failing = Doing(fails=third.name)
    assert failing.work(tmp_path) == f"{third.text}: the server is gone" and len(failing.done) == 2


def test_each_step_has_a_word_of_its_own_and_the_study_that_of_the_whole() -> None:
    result = judged()
    assert (result.verdict.word, result.verdict.exit_code) == ("improvement", Exit.OK)
    words = {one["step"]: one["verdict"]["word"] for one in result.sections["study"]["steps"]}
    assert words == {
        "all of them": "improvement",
        "radix_key, ladder": "equivalent",
        "radix_key, left out": "improvement",
        "cuda_graph, ladder": "improvement",
        "cuda_graph, left out": "improvement",
        "lookahead, ladder": "improvement",
        "lookahead, left out": "improvement",
        "vocoder_batch, ladder, left out": "improvement",
        "encoder_thread, ladder": "equivalent",
        "encoder_thread, left out": "equivalent",
        "encoder_cache, ladder, left out": "improvement",
    }
    assert "equivalent: encoder_thread" in result.verdict.because
    assert result.sections["primary"]["ratio"] == pytest.approx(3.3, rel=0.01)
    verdicts = [one for one in result.findings if one.kind is FindingKind.VERDICT]
    assert [one.statement.partition(":")[0] for one in verdicts] == ["improvement"]


def test_a_switch_that_does_nothing_says_so_and_one_that_is_not_shown_does_not() -> None:
    assert "does nothing that matters here" in entry("encoder_thread, left out")["effect"]
    assert "shown to lie within ±5 %" in entry("encoder_thread, left out")["effect"]

    def noisy(one: Configuration) -> float:
        return usual(one) * (1.25 if one.place % 2 else 1.0) ** (len(one.name) % 3)

    rates = iter((20.0, 26.0, 19.0, 31.0, 17.0, 24.0) * 200)
    told = entry("encoder_thread, left out", rate=lambda one: next(rates) + 0 * noisy(one))
    assert told["verdict"]["word"] == "inconclusive"
    assert "none was shown, which is not the same as none" in told["effect"]
    assert "so many pairs see" in told["effect"]


def test_what_a_key_on_the_host_prevents_is_told_apart_from_what_it_costs() -> None:
    blocks = {one["name"]: one for one in judged().sections["study"]["blocks"]}
    key = blocks["the key of each frame"]
    assert key["share"]["value"] == 0.5 and key["seen_in"] == "without radix_key"
    assert [(c["with_it"], c["without_it"]) for c in key["counters"]] == [(0.0, 4 * 300.0), (0.0, 4 * 290.0)]
    assert "equivalent" in key["own_cost"] and "+100.00 %" not in key["own_cost"]
    assert "what it prevents is worth +1" in key["if_it_went"]
    rows = blocks["the rows of a decoder's step"]
    assert "neither graphs nor lookahead" in rows["prevents"] and "lookahead" in rows["if_it_went"]
    assert set(blocks) == {one.name for one in HOST_POINTS}


def test_a_step_tells_its_story_in_seven_parts_with_all_its_evidence() -> None:
    step = entry("radix_key, left out")
    story = step["story"]
    assert list(story) == ["symptom", "hypothesis", "tool", "evidence", "change", "effect", "cost"]
    assert "perfkit layer2" in story["tool"] and "perfkit regress" in story["tool"]
    assert "below frame_keys.py in thread ar: 50.0 %" in story["evidence"]
    assert 'unblocked: engine_graph_replays_total{stage="ar"}: 0 → 1,200' in story["evidence"]
    assert story["change"] == "radix_key host → device" and "helps" in story["effect"]
    assert (step["answers"]["word"], step["answers"]["samples"]) == ("identical", 41)
    assert entry("all of them")["story"]["change"].count(" → ") == 4
    queue = entry("vocoder_batch, ladder, left out")["story"]
    assert "queue of vocoder: 100 ms, 50.0 % of the request" in queue["evidence"]
    assert 'engine_dropped_rows_total{stage="ar"}: 0 → 48' in entry("lookahead, ladder")["story"]["cost"]


def test_what_is_held_is_told_of_fresh_servers_alone() -> None:
    name = "engine_graph_bytes"
    assert not any(name in one for one in entry("cuda_graph, left out")["costs"])
    fresh = replace(FOUR, fresh=True)
    assert f"{name}: 1,000 → 1,000" in entry("cuda_graph, left out", study=fresh)["costs"]


def test_a_switch_whose_path_did_not_run_is_no_treatment() -> None:
    def never(one: Configuration) -> dict[str, float]:
        return counters(one) | {'engine_lookahead_steps_total{stage="ar"}': 0.0}

    made = judge_study(analysed(FOUR, timed(FOUR, usual, never), seen(FOUR), asked(FOUR)))
    words = {one["step"]: one["verdict"]["word"] for one in made.sections["study"]["steps"]}
    assert words["lookahead, left out"] == words["all of them"] == "invalid"
    assert made.verdict.exit_code is Exit.INVALID and words["cuda_graph, left out"] == "improvement"


def test_answers_that_differ_are_a_regression_however_fast() -> None:
    (key,) = [one.key for one in configurations(FOUR) if one.name == "without lookahead"]
    made = judged(different=key)
    assert (made.verdict.word, made.verdict.exit_code) == ("regression", Exit.FAILED)
    assert made.verdict.because.startswith("answers differ: lookahead, left out")
    answers = {one["step"]: one["answers"]["word"] for one in made.sections["study"]["steps"]}
    assert answers["cuda_graph, left out"] == "identical" and answers["radix_key, ladder"] == "not asked"


def test_a_study_that_was_ended_early_concludes_nothing_final() -> None:
    made = judge_study(found(), ["round 3, speech, 8 configurations"], "it was told to end")
    assert made.verdict.exit_code is Exit.NO_CONCLUSION and "--resume" in made.verdict.next_step
    with pytest.raises(UnreadableInput, match="no round of both"):
        judge_study(analysed(FOUR, Rounds(), {}, {}), [], "")


def test_a_step_without_runs_is_told_as_not_run() -> None:
    rounds = timed(FOUR)
    rest = {key: value for key, value in rounds.of.items() if key.startswith("speech")}
    made = judge_study(analysed(FOUR, Rounds(rest), {}, {}))
    step = {one["step"]: one for one in made.sections["study"]["steps"]}["encoder_thread, left out"]
    assert step["verdict"] is None and step["effect"].startswith("not run")
    assert "not run: encoder_thread, encoder_cache" in made.verdict.because
    blocks = {one["name"]: one for one in made.sections["study"]["blocks"]}
    assert "not measured" in blocks["the states of an audio"]["own_cost"]


def test_the_ledgers_own_rows_are_read() -> None:
    row = {"stage": "vocoder", "interval": "queue", "n": 9, "mean_ms": 3.0, "share": 0.4}
    told = ledger_of({"stages": [row, row | {"part": "first"}, {"stage": "x", "interval": "hop", "n": 1}]})
    assert [(one.stage, one.share) for one in told] == [("vocoder", 0.4)]


def test_the_study_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_ab_study(judged())
    said = capsys.readouterr().out
    assert said.startswith("IMPROVEMENT") and "radix_key, left out" in said
    assert "What stands in a step" in said and "hypothesis" in said and "not shown" in said
