"""How far a finding carries: every row of the table at its borders, and what guards do to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.finding import Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.strength import Judgement, exit_code_for, judge_strength
from layers.evidence.strength_table import (
    TABLE,
    Accuracy,
    Comparison,
    Facts,
    LatencyPercentile,
    Outputs,
    SampledSeries,
    Stacks,
    StageLedger,
    Standing,
    SweepPoint,
    Trace,
)
from layers.evidence.verdict import Exit

BORDERS: list[tuple[Facts, Standing]] = [
    (SampledSeries(samples=0), Standing.NOTHING),
    (SampledSeries(samples=19, windows=3), Standing.DIRECTIONAL),
    (SampledSeries(samples=20, windows=2), Standing.ENOUGH),
    (SampledSeries(samples=20, windows=3), Standing.STRONG),
    (Trace(steps=9, operations=0), Standing.NOTHING),
    (Trace(steps=4, operations=199, captures=3, supported=True), Standing.DIRECTIONAL),
    (Trace(steps=5, operations=199), Standing.ENOUGH),
    (Trace(steps=4, operations=200), Standing.ENOUGH),
    (Trace(steps=5, operations=200, captures=2), Standing.ENOUGH),
    (Trace(steps=5, operations=200, captures=3), Standing.STRONG),
    (Trace(steps=5, operations=200, supported=True), Standing.STRONG),
    (StageLedger(requests=0), Standing.NOTHING),
    (StageLedger(requests=19, runs=3), Standing.DIRECTIONAL),
    (StageLedger(requests=20, runs=2), Standing.ENOUGH),
    (StageLedger(requests=None, runs=3), Standing.ENOUGH),
    (StageLedger(requests=20, runs=3), Standing.STRONG),
    (Stacks(ticks=0, captures=3, agree=True), Standing.NOTHING),
    (Stacks(ticks=199, captures=3, agree=True), Standing.DIRECTIONAL),
    (Stacks(ticks=200, captures=2, agree=True), Standing.DIRECTIONAL),
    (Stacks(ticks=200, captures=3, agree=False), Standing.ENOUGH),
    (Stacks(ticks=200, captures=3, agree=True), Standing.STRONG),
    (SweepPoint(repeats=3, requests=0), Standing.NOTHING),
    (SweepPoint(repeats=1, requests=99), Standing.DIRECTIONAL),
    (SweepPoint(repeats=2, requests=99), Standing.ENOUGH),
    (SweepPoint(repeats=3, requests=99), Standing.STRONG),
    (LatencyPercentile(quantile=0.99, requests=367), Standing.NOTHING),
    (LatencyPercentile(quantile=0.99, requests=368), Standing.STRONG),
    (Comparison(pairs=0, interval_clear=True), Standing.NOTHING),
    (Comparison(pairs=2, interval_clear=True), Standing.DIRECTIONAL),
    (Comparison(pairs=3, interval_clear=True), Standing.ENOUGH),
    (Comparison(pairs=4, interval_clear=False), Standing.ENOUGH),
    (Comparison(pairs=4, interval_clear=True), Standing.STRONG),
    (Outputs(items=0, samples=0, repeats=0, caught=True), Standing.NOTHING),
    (Outputs(items=19, samples=99, repeats=99, caught=True), Standing.DIRECTIONAL),
    (Outputs(items=19, samples=99, repeats=99, caught=True, differ=True), Standing.STRONG),
    (Outputs(items=20, samples=99, repeats=98, caught=True), Standing.ENOUGH),
    (Outputs(items=20, samples=99, repeats=99, caught=False), Standing.ENOUGH),
    (Outputs(items=20, samples=99, repeats=99, caught=True), Standing.STRONG),
    (Accuracy(items=0, p_value=1.0, difference=False, detectable_pct=1.0), Standing.NOTHING),
    (Accuracy(items=99, p_value=0.06, difference=True, detectable_pct=1.0), Standing.DIRECTIONAL),
    (Accuracy(items=99, p_value=0.04, difference=True, detectable_pct=None), Standing.ENOUGH),
    (Accuracy(items=99, p_value=0.04, difference=True, detectable_pct=1.0), Standing.STRONG),
    (Accuracy(items=99, p_value=0.9, difference=False, detectable_pct=None), Standing.DIRECTIONAL),
    (Accuracy(items=99, p_value=0.9, difference=False, detectable_pct=1.0), Standing.STRONG),
]

STRONG_TRACE = Trace(steps=30, operations=9000, captures=3)
ONE_TRACE = Trace(steps=12, operations=340)


def fired(effect: Effect) -> Checked:
    return Checked("PK999", "test-guard", effect, fired=True, message="seen")


def clear_guard(effect: Effect) -> Checked:
    return Checked("PK998", "quiet-guard", effect, fired=False, message="not seen")


@pytest.mark.parametrize(("facts", "standing"), BORDERS)
def test_facts_stand_where_the_table_puts_them(facts: Facts, standing: Standing) -> None:
    assert facts.standing is standing


def test_the_table_has_one_row_for_each_kind_of_measurement() -> None:
    assert {row.measurement for row in TABLE} == {facts.row.measurement for facts, _ in BORDERS}
    assert all(row.counts and row.directional_below and row.strong_needs for row in TABLE)


def test_percentile_row_states_the_least_n_of_each_percentile() -> None:
    words = LatencyPercentile.row.directional_below
    assert "6 for p50, 36 for p90, 72 for p95, 368 for p99, 3,688 for p99.9" in words


COUNTS = st.integers(0, 400)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.booleans())
def test_more_evidence_never_stands_lower(a: int, b: int, c: int, more: int, flag: bool) -> None:
    steps: list[tuple[Facts, Facts]] = [
        (SampledSeries(a, b), SampledSeries(a + more, b + more)),
        (Trace(a, b, c, flag), Trace(a + more, b + more, c + more, flag)),
        (StageLedger(a, b), StageLedger(a + more, b + more)),
        (Stacks(a, b, flag), Stacks(a + more, b + more, flag)),
        (SweepPoint(a, b), SweepPoint(a + more, b + more)),
        (LatencyPercentile(0.95, a), LatencyPercentile(0.95, a + more)),
        (Comparison(a, flag), Comparison(a + more, flag)),
    ]
    ladder = list(Standing).index
    assert all(ladder(less.standing) <= ladder(better.standing) for less, better in steps)


def test_a_met_strong_column_without_guards_is_strong() -> None:
    judgement = judge_strength(STRONG_TRACE, clear=True)
    assert judgement == Judgement(
        Strength.STRONG,
        "3 captures, or one capture that an independent method supports"
        " (3 captures, 30 steps, 9,000 operations)",
        directional=False,
    )


def test_one_clean_capture_is_medium_and_says_what_strong_needs() -> None:
    judgement = judge_strength(ONE_TRACE, clear=True)
    assert judgement is not None and judgement.strength is Strength.MEDIUM
    assert "strong needs 3 captures" in judgement.rule
    assert "(1 capture, 12 steps, 340 operations)" in judgement.rule


def test_one_capture_without_a_clear_direction_is_weak_unless_two_methods_agree() -> None:
    alone = judge_strength(ONE_TRACE, clear=False)
    agreed = judge_strength(ONE_TRACE, clear=False, methods_agree=True)
    assert alone is not None and alone.strength is Strength.WEAK and not alone.directional
    assert agreed is not None and agreed.strength is Strength.MEDIUM


def test_too_small_an_n_is_weak_and_directional_and_says_why() -> None:
    judgement = judge_strength(Trace(steps=1, operations=61), clear=True)
    assert judgement == Judgement(
        Strength.WEAK,
        "directional: fewer than 5 steps and fewer than 200 operations (1 capture, 1 step, 61 operations)",
        directional=True,
    )


@pytest.mark.parametrize("times", [1, 3])
def test_a_directional_guard_makes_the_best_evidence_directional_and_is_named_once(times: int) -> None:
    judgement = judge_strength(STRONG_TRACE, [fired(Effect.DIRECTIONAL)] * times, clear=True)
    assert judgement == Judgement(Strength.WEAK, "directional: PK999 test-guard", directional=True)


def test_a_void_guard_leaves_no_finding() -> None:
    assert judge_strength(STRONG_TRACE, [fired(Effect.NOTE), fired(Effect.VOID)], clear=True) is None


def test_nothing_measured_leaves_no_finding() -> None:
    assert judge_strength(SampledSeries(samples=0), clear=True) is None


def test_notes_and_guards_that_did_not_fire_weaken_nothing() -> None:
    checked = [fired(Effect.NOTE), clear_guard(Effect.VOID), clear_guard(Effect.DIRECTIONAL)]
    judgement = judge_strength(STRONG_TRACE, checked, clear=True)
    assert judgement is not None and judgement.strength is Strength.STRONG


def test_a_known_confound_makes_the_best_evidence_weak_and_is_named() -> None:
    judgement = judge_strength(STRONG_TRACE, clear=True, doubt="another tenant used the GPU")
    assert judgement is not None and judgement.strength is Strength.WEAK
    assert judgement.rule.startswith("indirect or confounded: another tenant used the GPU")


@pytest.mark.parametrize(
    ("checked", "directional", "code"),
    [
        ([], False, Exit.FAILED),
        ([fired(Effect.NOTE), clear_guard(Effect.VOID)], False, Exit.FAILED),
        ([], True, Exit.NO_CONCLUSION),
        ([fired(Effect.DIRECTIONAL)], False, Exit.NO_CONCLUSION),
        ([fired(Effect.DIRECTIONAL), fired(Effect.VOID)], True, Exit.INVALID),
    ],
)
def test_guards_override_the_exit_code_that_was_reached(
    checked: list[Checked], directional: bool, code: Exit
) -> None:
    assert exit_code_for(Exit.FAILED, checked, directional=directional) is code


def test_what_is_invalid_is_no_hint() -> None:
    hint = [Checked("PK901", "few-samples", Effect.DIRECTIONAL, fired=True, message="")]
    assert exit_code_for(Exit.INVALID, hint, directional=False) is Exit.INVALID
