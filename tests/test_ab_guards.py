"""Each guard of Layer 4 on both sides: the trap fires it, the nearest experiment without it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.guard import Effect
from layers.evidence.measurement import Artifact
from layers.layer3_sweep.model import Accuracy, Counts, Latency, Quantile, Timing
from layers.layer4_ab.analyse import Beside
from layers.layer4_ab.judge import judge
from layers.layer4_ab.model import AbAnalysis, DropFirst, GateState, Recorded
from tests.ab_builders import BASE, again, analysed, arm_a, arm_b, fired, judged

CLEAN_NOTES = {"treatment-unchecked", "accuracy-gate-missing"}
"""What fires of an experiment that is in order and was asked for no proof."""


def test_an_experiment_in_order_fires_nothing_but_what_was_not_asked_for() -> None:
    assert set(fired(analysed(aa=again()))) == CLEAN_NOTES


@pytest.mark.parametrize(("starts", "few"), [(1, True), (2, True), (3, False), (4, False)])
def test_too_few_pairs(starts: int, few: bool) -> None:
    found = analysed(arm_a(BASE[:starts]), arm_b([100.0, 101.0, 99.0, 100.5][:starts]))
    assert ("too-few-pairs" in fired(found)) is few


def test_a_floor_that_nobody_measured() -> None:
    blind = analysed(arm_a(times=False), arm_b(times=False))
    assert fired(blind)["floor-not-measured"].effect is Effect.NOTE
    three = analysed(arm_a(BASE[:3]), arm_b([100.0, 101.0, 99.0]))
    assert fired(three)["floor-not-measured"].effect is Effect.DIRECTIONAL
    assert "floor-not-measured" not in fired(analysed())  # repeats inside a balanced order that is known
    with_runs = analysed(arm_a(BASE[:3]), arm_b([100.0, 101.0, 99.0]), again())
    assert "floor-not-measured" not in fired(with_runs)


def test_an_effect_inside_the_floor_is_not_claimed() -> None:
    b = arm_b([rate * factor for rate, factor in zip(BASE, (1.01, 1.011, 1.012, 1.011), strict=True)])
    wide = analysed(b=b, aa=again((100.0, 103.0)))
    assert "inside-the-floor" in fired(wide) and wide.primary is not None and not wide.primary.claimed
    narrow = analysed(
        arm_a((100.0, 100.05, 99.97, 100.02)),
        arm_b((101.0, 101.1, 101.0, 101.05)),
        again((100.0, 100.1)),
    )
    assert "inside-the-floor" not in fired(narrow) and narrow.primary is not None and narrow.primary.claimed


def test_ratios_without_any_spread_are_copies() -> None:
    assert "ratios-without-spread" in fired(analysed(arm_a((100.0,) * 4), arm_b((103.0,) * 4)))
    assert "ratios-without-spread" not in fired(analysed())


def test_one_file_in_both_arms() -> None:
    one = Artifact("r.json", "c" * 64, 10)
    same = {"tool": "t"}
    a, b = arm_a(artifacts=(one,), facts=same), arm_b(artifacts=(one,), facts=same)
    assert "same-file-in-both-arms" in fired(analysed(a, b))
    told = analysed(
        arm_a(artifacts=(one,), facts={"revision": "base"}),
        arm_b(artifacts=(one,), facts={"revision": "new"}),
        variable="revision",
    )
    assert "same-file-in-both-arms" not in fired(told)


def test_an_order_that_is_not_balanced() -> None:
    blocked = analysed(arm_a(positions=(0, 1, 2, 3)), arm_b(positions=(4, 5, 6, 7)))
    assert fired(blocked)["order-not-balanced"].effect is Effect.DIRECTIONAL
    alternating = analysed(arm_a(positions=(0, 2, 4, 6)), arm_b(positions=(1, 3, 5, 7)))
    assert "order-not-balanced" in fired(alternating)
    unknown = analysed(arm_a(times=False), arm_b(times=False))
    assert fired(unknown)["order-not-balanced"].effect is Effect.NOTE
    declared = analysed(arm_a(times=False), arm_b(times=False), beside=Beside(order="ABBAABBA"))
    assert "order-not-balanced" not in fired(declared)


def test_a_drift_across_the_session() -> None:
    def level(place: int) -> float:
        return 100 * (1 + 0.01 * place) + (0.05 if place % 3 else 0.0)

    a, b = (0, 3, 4, 7), (1, 2, 5, 6)
    drifting = analysed(arm_a([level(p) for p in a]), arm_b([level(p) for p in b]))
    assert "drift-across-runs" in fired(drifting)
    assert "drift-across-runs" not in fired(analysed())


def test_the_second_of_a_pair_is_always_faster() -> None:
    warm = analysed(arm_a((100.0, 103.1, 100.1, 103.0)), arm_b((103.0, 100.0, 103.1, 100.1)))
    assert "order-effect" in fired(warm)
    assert "order-effect" not in fired(analysed())


def test_a_first_round_is_dropped_from_both_arms() -> None:
    rounds = [(55.0, 100.0, 100.4, 99.8, 100.1, 100.2)] * 2 + [(54.0, 100.2, 100.0, 99.9, 100.3, 100.1)] * 2
    steady = [(100.1, 100.0, 100.4, 99.8, 100.1, 100.2), (100.3, 99.9, 100.1, 100.0, 100.2, 100.1)] * 2
    found = analysed(arm_a(rounds), arm_b(steady))
    assert "first-round-dropped" in fired(found)
    assert all(one.excluded for one in found.rounds if one.number == 1)
    assert "first-round-dropped" not in fired(analysed(arm_a(steady), arm_b(steady)))
    kept = analysed(arm_a(rounds), arm_b(steady), drop_first=DropFirst.NEVER)
    assert "first-round-dropped" not in fired(kept)


def contended(arm: Recorded, starts: int) -> Recorded:
    rounds = tuple(
        replace(one, excluded="PK312 contended: others") if n < starts else one
        for n, one in enumerate(arm.rounds)
    )
    return replace(arm, rounds=rounds)


def test_runs_that_do_not_count_are_told_with_how_many_are_kept() -> None:
    one = fired(analysed(contended(arm_a(), 1)))["runs-excluded"]
    assert one.effect is Effect.NOTE and one.message.startswith("7 of 8 runs kept")
    most = fired(analysed(contended(arm_a(), 3), contended(arm_b(), 3)))["runs-excluded"]
    assert most.effect is Effect.DIRECTIONAL
    assert "runs-excluded" not in fired(analysed())


def test_an_outlier_leaves_with_its_partner() -> None:
    a = arm_a((100.0, 60.0, 100.5, 99.5, 100.2))
    found = analysed(a, arm_b((100.1, 100.3, 99.9, 100.0, 100.4)))
    assert len(found.pairs) == 4
    assert {one.start for one in found.rounds if one.excluded} == {"a2.json", "b2.json"}


def test_two_states_of_a_server() -> None:
    a = arm_a((26.0, 33.0, 26.1, 33.1, 26.05, 33.05))
    found = analysed(a, arm_b((33.0, 33.2, 33.1, 33.15, 33.05, 33.12)))
    assert "two-states-of-a-server" in fired(found) and len(found.pairs) == 6
    assert "two-states-of-a-server" not in fired(analysed())


def test_rounds_of_one_start_are_one() -> None:
    found = analysed(arm_a([(100.0, 101.0, 99.0)]), arm_b([(103.0, 104.0, 102.0)]))
    assert {"one-start-an-arm", "too-few-pairs"} <= set(fired(found))
    assert found.primary is not None and found.primary.pairs == 1 and found.primary.low is None
    assert "one-start-an-arm" not in fired(analysed())


def test_starts_that_nobody_tells() -> None:
    assert "starts-not-told" in fired(analysed(arm_a(starts_told=False)))
    assert "starts-not-told" not in fired(analysed())


def test_a_start_without_a_partner() -> None:
    found = analysed(arm_a((*BASE, 100.0)))
    assert "unpaired-starts" in fired(found) and len(found.pairs) == 4
    assert "unpaired-starts" not in fired(analysed())


def test_a_run_that_does_not_count_takes_its_neighbour_with_it() -> None:
    a = arm_a()
    rounds = [replace(r, excluded="contended") if n == 1 else r for n, r in enumerate(a.rounds)]
    found = analysed(replace(a, rounds=tuple(rounds)))
    assert [(p.a.name, p.b.name) for p in found.pairs] == [
        *(("a1.json", "b1.json"), ("a3.json", "b3.json"), ("a4.json", "b4.json"))
    ]
    assert fired(found)["unpaired-starts"].message.endswith("b b2.json")


def test_more_than_one_difference_is_nobodys_experiment() -> None:
    base, new = {"tool": "t 1", "mode": "a"}, {"tool": "t 2", "mode": "b"}
    a, b = arm_a(facts=base), arm_b(facts=new)
    assert fired(analysed(a, b))["arms-differ"].effect is Effect.VOID
    assert "arms-differ" in fired(analysed(a, b, variable="mode"))
    assert "arms-differ" not in fired(analysed(a, b, variable="mode", derived=("tool",)))
    assert "arms-differ" not in fired(analysed())  # they differ in the mode alone
    assert "arms-differ" in fired(analysed(variable="other"))


def test_a_variable_that_is_the_same_in_both_arms() -> None:
    same = {"tool": "t", "mode": "sync"}
    a, b = arm_a(facts=same), arm_b(facts=same)
    assert fired(analysed(a, b, variable="mode"))["variable-is-the-same"].effect is Effect.VOID
    assert fired(analysed(a, b, variable="flag"))["variable-is-the-same"].effect is Effect.NOTE
    assert "variable-is-the-same" not in fired(analysed(variable="mode"))


def test_arms_that_were_asked_different_things() -> None:
    longer = arm_b(data={"requests": 800.0, "input tokens a request": 140.0})
    a = arm_a(data={"requests": 800.0, "input tokens a request": 100.0})
    assert "data-differ" in fired(analysed(a, longer))
    near = arm_b(data={"requests": 800.0, "input tokens a request": 100.4})
    assert "data-differ" not in fired(analysed(a, near))
    assert "data-differ" in fired(analysed(a, arm_b(data={"requests": 400.0})))


def treated(a: float, b: float, **other: Any) -> AbAnalysis:
    name = 'steps_total{mode="async"}'
    arms = arm_a(counters={name: a}), arm_b(counters={name: b})
    return analysed(*arms, ran=("async",), **other)


@pytest.mark.parametrize(("a", "b", "untreated"), [(0, 635, False), (0, 0, True), (12, 600, True)])
def test_a_path_that_ran_in_neither_arm_or_in_both(a: float, b: float, untreated: bool) -> None:
    found = fired(treated(a, b))
    assert ("untreated-arm" in found) is untreated
    assert "treatment-unchecked" not in found


def test_treatment_unchecked() -> None:
    assert "treatment-unchecked" in fired(analysed())


def test_logs_prove_a_treatment_too(tmp_path: Path) -> None:
    off, on = tmp_path / "off.log", tmp_path / "on.log"
    off.write_text("step sync\n" * 8)
    on.write_text("step async\nstep sync\nstep async\n")
    beside = Beside(logs_a=[str(off)], logs_b=[str(on)])
    found = analysed(ran=(r"step async\b",), beside=beside)
    assert [(one.a, one.b) for one in found.treatment] == [(0, 2)]
    assert "untreated-arm" not in fired(found)
    assert "untreated-arm" in fired(analysed(ran=("step sync",), beside=beside))


def test_a_gain_beyond_the_stage_is_refused_until_it_is_explained() -> None:
    much = arm_b(by=1.30)
    refused = fired(analysed(b=much, stage="vocoder", stage_share=0.14))
    assert refused["gain-beyond-the-stage"].effect is Effect.VOID
    counters = {"graph_replays_total": 0.0}, {"graph_replays_total": 900.0}
    explained = fired(
        analysed(
            arm_a(counters=counters[0]),
            arm_b(by=1.30, counters=counters[1]),
            stage_share=0.14,
            unblocked=("graph_replays",),
        )
    )
    assert explained["gain-beyond-the-stage"].effect is Effect.NOTE
    assert "gain-beyond-the-stage" not in fired(analysed(b=arm_b(by=1.10), stage_share=0.14))


def test_a_latency_is_held_against_the_stage_in_its_own_direction() -> None:
    def times(ms: float) -> dict[str, Any]:
        return {"timings": {Timing.E2E: Latency(800, ms, 1.0, ())}}

    a, b = arm_a(runs=times(100.0)), arm_b(runs=times(60.0))
    found = analysed(a, b, metric="e2e_mean_ms", stage_share=0.14)
    assert "gain-beyond-the-stage" in fired(found)


def test_answers_that_got_shorter() -> None:
    a = arm_a(runs={"output_tokens_per_s": 10_000.0})
    shorter = arm_b(by=1.2, runs={"output_tokens_per_s": 10_000.0})
    assert fired(analysed(a, shorter))["outputs-differ-in-length"].effect is Effect.VOID
    little = fired(analysed(a, arm_b(by=1.04, runs={"output_tokens_per_s": 10_000.0})))
    assert little["outputs-differ-in-length"].effect is Effect.DIRECTIONAL
    chance = analysed(a, arm_b((100.0, 96.0, 104.0, 106.0), runs={"output_tokens_per_s": 10_000.0}))
    assert chance.output is not None and abs(chance.output.ratio - 1) > 0.01
    assert "outputs-differ-in-length" not in fired(chance)
    same = analysed(a, arm_b(runs={"output_tokens_per_s": 10_010.0}))
    assert "outputs-differ-in-length" not in fired(same)


def test_failures_that_differ() -> None:
    shed = arm_b(by=1.05, runs={"counts": Counts(760, 40, 0, 800, {"ok": 760, "shed": 40})})
    assert "failures-differ" in fired(analysed(b=shed))
    assert "failures-differ" not in fired(analysed())


def test_arms_that_ran_at_once() -> None:
    assert "arms-at-once" in fired(analysed(arm_a(positions=(0, 3, 4, 7)), arm_b(positions=(0, 2, 5, 6))))
    assert "arms-at-once" not in fired(analysed())


def right(wer: float, left_out: int = 0) -> dict[str, Any]:
    return {"accuracy": Accuracy("wer", wer, 800 - left_out, left_out)}


def each_right(arm: Recorded, *shares: float) -> Recorded:
    """Exact matches of each start."""
    rounds = [
        replace(one, swept=replace(one.swept, accuracy=Accuracy("exact-match", share, 500, 0)))
        for one, share in zip(arm.rounds, shares, strict=True)
    ]
    return replace(arm, rounds=tuple(rounds))


def test_a_fall_of_accuracy_that_starts_of_one_arm_show_too_is_no_loss() -> None:
    a = each_right(arm_a(), 0.982, 0.976, 0.984, 0.979)
    chance = analysed(a, each_right(arm_b(), 0.978, 0.981, 0.975, 0.980))
    assert chance.gates["accuracy"].state is GateState.NOT_SHOWN
    assert "accuracy-lost" not in fired(chance)
    lost = analysed(a, each_right(arm_b(), 0.912, 0.905, 0.908, 0.911))
    assert lost.gates["accuracy"].state is GateState.FAILED


def test_the_accuracy_gate() -> None:
    assert "accuracy-gate-missing" in fired(analysed(arm_a(runs=right(0.0122))))
    same = fired(analysed(arm_a(runs=right(0.0122)), arm_b(runs=right(0.0123))))
    assert not {"accuracy-gate-missing", "accuracy-lost"} & set(same)
    lost = judged(arm_a(runs=right(0.0122)), arm_b(by=1.2, runs=right(0.0310)))
    assert lost.verdict.word == "regression" and lost.verdict.exit_code == 1
    assert "accuracy-lost" in {g.name for g in lost.guards if g.fired}
    fewer = fired(analysed(arm_a(runs=right(0.0122)), arm_b(runs=right(0.0122, left_out=10))))
    assert "accuracy-lost" in fewer


def tail(n: int | None) -> dict[str, Any]:
    return {"timings": {Timing.E2E: Latency(n, 100.0, 1.0, (Quantile(0.5, 99.0), Quantile(0.99, 200.0)))}}


def test_tails_without_their_n_are_not_compared() -> None:
    few = analysed(arm_a(runs=tail(100)), arm_b(runs=tail(100)))
    assert "tails-without-n" in fired(few)
    assert "e2e_p99_ms" not in {e.metric.name for e in few.others}
    many = analysed(arm_a(runs=tail(400)), arm_b(runs=tail(400)))
    assert "tails-without-n" not in fired(many)
    assert {"e2e_p50_ms", "e2e_p99_ms"} <= {e.metric.name for e in many.others}


def test_results_that_were_lost() -> None:
    assert "results-lost" in fired(analysed(arm_a(lost=("x.json: cut",))))
    assert "results-lost" not in fired(analysed())


def test_loads_that_only_one_arm_has() -> None:
    from layers.collectors.load.plan import Load

    more = arm_b()
    extra = replace(more.rounds[0], swept=replace(more.rounds[0].swept, load=Load(64)))
    found = analysed(b=replace(more, rounds=(*more.rounds, extra)))
    assert "loads-of-one-arm" in fired(found) and str(found.load) == "8 at a time"
    assert "loads-of-one-arm" not in fired(analysed())


def test_a_machine_that_changed_between_runs() -> None:
    one = fired(analysed(arm_a(changes=("001-a: machine.governor: performance against powersave",))))
    assert one["machine-changed"].effect is Effect.NOTE
    most = tuple(f"{n:03}-a: gpu.clock: 1980 against 1410" for n in range(5))
    assert fired(analysed(arm_a(changes=most)))["machine-changed"].effect is Effect.DIRECTIONAL
    assert "machine-changed" not in fired(analysed())


def test_pk540_an_experiment_that_ended_early_only_hints() -> None:
    whole, cut = analysed(b=arm_b(by=1.1)), analysed(arm_a(ended_early="run 9 (b): gone"), arm_b(by=1.1))
    assert judge(whole).verdict.exit_code == 0 and "experiment-ended-early" not in fired(whole)
    verdict = judge(cut).verdict
    assert (verdict.word, verdict.directional, verdict.exit_code) == ("improvement", True, 3)
    assert fired(cut)["experiment-ended-early"].message == "run 9 (b): gone"
