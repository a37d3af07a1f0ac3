"""Verdicts of Layer 4 on experiments whose answer is known, published ones among them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.finding import FindingKind, Strength
from layers.layer3_sweep.model import Latency, Quantile, Timing
from layers.layer4_ab.history import history_of
from layers.layer4_ab.model import Call, StartsAre
from perfkit.cli.ab_view import show_ab
from tests.ab_builders import BASE, again, analysed, arm_a, arm_b, judged

PUBLISHED = "sglang_omni"


def apart(pct: float, wobble: tuple[float, ...] = (0.1, -0.15, 0.05, 0.0)) -> list[float]:
    """B of this many percent more than A, give or take some tenths."""
    return [rate * (1 + (pct + w) / 100) for rate, w in zip(BASE, wobble, strict=True)]


def test_a_gain_beyond_interval_and_floor_is_an_improvement() -> None:
    result = judged(arm_a(), arm_b(apart(6.0)), again())
    assert (result.verdict.word, result.verdict.directional, result.verdict.exit_code) == (
        "improvement",
        False,
        0,
    )
    primary = result.sections["primary"]
    assert primary["ratio"] == pytest.approx(1.06, abs=0.002)
    assert primary["low"] < 1.06 < primary["high"]
    assert (primary["n_pairs"], primary["n_starts"]) == (4, 8)


def test_a_loss_is_a_regression_and_fails() -> None:
    result = judged(arm_a(), arm_b(apart(-6.0)), again())
    assert (result.verdict.word, result.verdict.exit_code) == ("regression", 1)
    assert result.sections["gates"]["performance"]["state"] == "failed"


def test_lower_is_better_for_times() -> None:
    def times(ms: float) -> dict[str, Any]:
        return {"timings": {Timing.E2E: Latency(800, ms, 1.0, ())}}

    found = analysed(arm_a(runs=times(100.0)), arm_b(runs=times(90.0)), metric="e2e_mean_ms")
    assert found.primary is not None and found.primary.call is Call.BETTER
    assert found.primary.ratio == pytest.approx(0.9) and found.primary.gain > 0


def test_no_difference_without_a_margin_is_inconclusive_and_says_what_it_takes() -> None:
    result = judged()
    assert (result.verdict.word, result.verdict.exit_code) == ("inconclusive", 3)
    assert result.sections["primary"]["mde_pct"] > 0
    assert "pairs" in result.verdict.next_step
    assert result.sections["gates"]["performance"]["state"] == "not-shown"


def test_no_difference_inside_a_margin_is_equivalent() -> None:
    result = judged(margin=0.05)
    assert (result.verdict.word, result.verdict.exit_code) == ("equivalent", 0)
    assert judged(margin=0.002).verdict.word == "inconclusive"


def test_a_real_loss_inside_the_margin_is_equivalent_and_a_real_gain_is_one() -> None:
    steady = (100.0, 100.05, 99.97, 100.02)
    less, more = ([rate * by for rate in (99.99, 100.03, 100.0, 100.04)] for by in (0.99, 1.01))
    lost = judged(arm_a(steady), arm_b(less), margin=0.03)
    assert lost.verdict.word == "equivalent" and "real" in lost.verdict.because
    assert judged(arm_a(steady), arm_b(more), margin=0.03).verdict.word == "improvement"


def test_two_pairs_only_hint() -> None:
    result = judged(arm_a((100.0, 100.2)), arm_b((150.0, 150.1)))
    assert (result.verdict.headline, result.verdict.exit_code) == ("IMPROVEMENT?", 3)
    assert result.findings[0].strength is Strength.WEAK


def test_one_pair_has_a_ratio_and_no_interval() -> None:
    result = judged(arm_a((100.0,)), arm_b((150.0,)))
    primary = result.sections["primary"]
    assert (primary["ratio"], primary["low"], primary["mde_pct"]) == (pytest.approx(1.5), None, None)
    assert (result.verdict.word, result.verdict.exit_code) == ("inconclusive", 3)


def test_a_void_guard_leaves_no_finding() -> None:
    one = {"tool": "t 1", "mode": "a"}
    result = judged(arm_a(facts=one), arm_b(apart(6.0), facts={"tool": "t 2", "mode": "b"}))
    assert (result.verdict.word, result.verdict.exit_code) == ("invalid", 4)
    assert result.findings == [] and "PK520" in result.verdict.because


def test_strong_needs_the_floor_and_proof_that_the_path_ran() -> None:
    counters = {"replays_total": 0.0}, {"replays_total": 635.0}
    a, b = arm_a(counters=counters[0]), arm_b(apart(6.0), counters=counters[1])
    strong = judged(a, b, again(), ran=("replays",))
    assert strong.findings[0].strength is Strength.STRONG
    assert strong.sections["treatment"] == {
        "ran": True,
        "evidence": [{"name": "replays", "a": 0.0, "b": 635.0, "where": "growth of the servers' counters"}],
    }
    unproven = judged(a, b, again())
    assert unproven.findings[0].strength is Strength.MEDIUM
    assert "nothing shows that the path ran" in unproven.findings[0].rule


def test_what_was_unblocked_is_a_finding_of_its_own() -> None:
    a, b = arm_a(counters={"captured": 0.0}), arm_b(apart(6.0), counters={"captured": 900.0})
    result = judged(a, b, unblocked=("captured",))
    assert result.sections["unblocked"][0]["b"] == 900
    assert any("unblocked captured: from 0 to 900" in f.statement for f in result.findings)


def test_metrics_beside_the_primary_are_adjusted_for_their_number() -> None:
    def times(level: float, quantiles: int) -> dict[str, Any]:
        shares = (0.5, 0.9, 0.95)[:quantiles]
        return {
            "timings": {Timing.E2E: Latency(800, level, 1.0, tuple(Quantile(q, level * q) for q in shares))}
        }

    found = analysed(arm_a(runs=times(100.0, 3)), arm_b(apart(6.0), runs=times(90.0, 3)))
    assert [e.metric.name for e in found.others] == ["e2e_mean_ms", "e2e_p50_ms", "e2e_p90_ms", "e2e_p95_ms"]
    assert all(e.p_adjusted is not None and e.p is not None and e.p_adjusted >= e.p for e in found.others)


def test_the_published_gain_of_2_79_pct_against_an_a_a_of_0_82_pct_is_claimed() -> None:
    """sgl-project/sglang-omni#2011, non-streaming: built of its mean and its A/A."""
    result = judged(arm_a((100.0, 100.3, 99.8, 100.1)), arm_b(_pairs(2.79, 0.25)), again((100.0, 100.82)))
    assert result.verdict.word == "improvement"
    assert result.sections["floors"][0]["pct"] == pytest.approx(0.82, abs=0.01)


def test_the_published_gain_of_0_43_pct_against_an_a_a_of_1_82_pct_is_not_claimed() -> None:
    """The same thread, streaming."""
    result = judged(arm_a((100.0, 100.3, 99.8, 100.1)), arm_b(_pairs(0.43, 0.1)), again((100.0, 101.82)))
    assert result.verdict.word == "inconclusive"
    assert result.sections["primary"]["call"] == "open"


def _pairs(pct: float, noise: float) -> list[float]:
    signs = (1.0, -1.0, 1.0, -1.0)
    bases = (100.0, 100.3, 99.8, 100.1)
    return [rate * (1 + (pct + sign * noise) / 100) for rate, sign in zip(bases, signs, strict=True)]


def test_a_spread_of_a_a_runs_as_published_is_a_floor() -> None:
    """Qwen3-TTS at 20 requests a second: throughput of identical code over a range of 4.3 %."""
    spread = again((20.0, 20.3, 19.7, 20.5, 19.65))
    found = analysed(arm_a((20.0, 20.1, 19.95, 20.05)), arm_b((20.4, 20.45, 20.35, 20.4)), spread)
    (floor,) = found.floors
    assert floor.runs == 5 and floor.of(4) == pytest.approx(0.0357, abs=0.002)
    assert found.primary is not None and found.primary.clear_of_zero and not found.primary.claimed


def test_earlier_floors_of_the_machine_count_and_those_of_another_do_not() -> None:
    here = {"machine": "box"}
    first = judged(arm_a(runs=here), arm_b(runs=here), again((100.0, 110.0)))
    document = {"command": "ab", **first.sections}
    found = history_of([document], "box", "8 at a time", "throughput_rps")
    assert found["throughput_rps"].spread == pytest.approx(math.log(1.1))
    assert history_of([document], "other", "8 at a time", "throughput_rps") == {}
    assert history_of([document], "", "8 at a time", "throughput_rps") == {}
    assert history_of([document], "box", "16 at a time", "throughput_rps") == {}


@pytest.mark.real_data
def test_the_published_a_b_of_dots_claims_nothing(data_dir: Path) -> None:
    from layers.layer4_ab.collect import read_arm
    from layers.layer4_ab.model import Arm

    path = [str(data_dir / PUBLISHED / "dots_pr1445_ab_results-summary.json")]
    a, b = (
        read_arm(arm, path, [f"revision={revision}"], StartsAre.RUN)
        for arm, revision in ((Arm.A, "base"), (Arm.B, "candidate"))
    )
    result = judged(a, b, variable="revision", load=32.0)
    assert (result.verdict.word, result.verdict.exit_code) == ("inconclusive", 3)
    primary = result.sections["primary"]
    assert primary["ratio"] == pytest.approx(1 - 0.0082, abs=0.0005)
    assert primary["a"] == pytest.approx([4.956, 5.051, 4.96, 4.986])


@pytest.mark.real_data
def test_the_published_a_b_of_audar_is_null_and_its_first_iteration_is_named(data_dir: Path) -> None:
    a, b = (_audar(data_dir / PUBLISHED / f"audar_perf_latest-order{order}.json") for order in (1, 2))
    result = judged(arm_a([a]), arm_b([b]), metric="throughput_rps")
    assert result.verdict.word == "inconclusive"
    assert "first-round-dropped" in {g.name for g in result.guards if g.fired}
    assert abs(result.sections["primary"]["ratio"] - 1) < 0.01


def _audar(path: Path) -> list[float]:
    """Iterations a second, in their order."""
    return [1 / one["total_s"] for one in json.loads(path.read_text("utf-8"))["iterations"]]


def test_the_verdict_leads_the_findings() -> None:
    result = judged(arm_a(), arm_b(apart(6.0)), again())
    assert result.findings[0].kind is FindingKind.VERDICT
    assert result.findings[0].statement.startswith("mode a → b: improvement.")


def test_a_pair_without_the_metric_keeps_its_place_and_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    result = judged(arm_a((100.0, 0.0, 101.0, 99.0, 100.5)), arm_b((103.0, 104.0, 102.0, 103.5, 103.0)))
    values = [(pair["a"], pair["a_value"]) for pair in result.sections["pairs"]]
    assert values[1] == ("a2.json", None) and values[2] == ("a3.json", pytest.approx(101.0))
    show_ab(result)
    assert "a2.json" not in capsys.readouterr().out.split("runs")[0]
