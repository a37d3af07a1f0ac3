"""Whatever two arms hold, an A/B ends in one of its words, a document of finite numbers, and a view of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layers.evidence.result import to_document
from layers.layer3_sweep.model import Latency, Quantile, Timing
from layers.layer4_ab.judge import judge
from layers.layer4_ab.model import Arm, Recorded
from layers.layer4_ab.word import Word
from perfkit.cli.ab_view import show_ab
from tests.ab_builders import again, analysed, recorded

rates = st.one_of(st.just(0.0), st.just(100.0), st.floats(1e-9, 1e9), st.floats(90, 110))
starts = st.lists(st.lists(rates, min_size=1, max_size=6), min_size=1, max_size=7)


@st.composite
def arms(draw: st.DrawFn) -> Recorded:
    arm = draw(st.sampled_from([Arm.A, Arm.B]))
    made = recorded(arm, draw(starts), times=draw(st.booleans()))
    ms = draw(st.one_of(st.just(0.0), st.floats(1e-6, 1e7)))
    n = draw(st.sampled_from([None, 5, 400]))
    times = {Timing.E2E: Latency(n, ms, 1.0, (Quantile(0.5, ms), Quantile(0.99, 3 * ms)))}
    left_out = draw(st.sets(st.integers(0, len(made.rounds) - 1), max_size=3))
    rounds = (
        replace(one, swept=replace(one.swept, timings=times), excluded="contended" if k in left_out else "")
        for k, one in enumerate(made.rounds)
    )
    return replace(made, rounds=tuple(rounds))


def as_arm(made: Recorded, arm: Arm) -> Recorded:
    return replace(made, rounds=tuple(replace(one, arm=arm) for one in made.rounds))


@settings(max_examples=120, deadline=None)
@given(arms(), arms(), st.booleans(), st.one_of(st.none(), st.floats(0.001, 0.5)))
def test_any_two_arms_end_in_a_word_with_finite_numbers(
    one: Recorded, other: Recorded, with_floor: bool, margin: float | None
) -> None:
    aa = again() if with_floor else None
    result = judge(analysed(as_arm(one, Arm.A), as_arm(other, Arm.B), aa, margin=margin))
    assert result.verdict.word in set(Word)
    text = json.dumps(to_document(result), allow_nan=False)
    assert json.loads(text)["primary"] is None or json.loads(text)["primary"]["ratio"] > 0
    show_ab(result)


def test_arms_that_are_the_same_to_the_last_digit_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    same = ([100.0],) * 4
    show_ab(judge(analysed(recorded(Arm.A, same), recorded(Arm.B, same))))
    assert "PK503" in capsys.readouterr().out
