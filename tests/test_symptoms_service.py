"""Symptoms of how requests share the device: prefill beside decode, queueing between stages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.symptom import Seen
from layers.layer1_gpu_busy.model import Step
from layers.layer1_gpu_busy.symptoms.service import S7, S11, rank_correlation
from tests.builders import kernel, trace_of
from tests.symptom_builders import facts_of, look, step, steps_of

DECODE = [step(t, t + 100, "decode", batch_size=8) for t in range(TRACE_MIN_STEPS)]


def seen_with(*prefill: Step) -> Seen:
    return look(S7, facts_of(trace_of([kernel(0, 1)]), steps=steps_of(*DECODE, *prefill)))


def test_steps_slowed_in_proportion_to_their_prefill_are_seen() -> None:
    seen = seen_with(*(step(0, 100 + 50 * i, "mixed", tokens=100 * i) for i in range(1, TRACE_MIN_STEPS + 1)))
    assert seen.present
    assert "2.50x" in seen.numbers


def test_prefill_that_does_not_slow_steps_is_not_seen() -> None:
    steps = (step(0, 110, "extend", tokens=100 * i) for i in range(1, TRACE_MIN_STEPS + 1))
    assert seen_with(*steps).present is False


@pytest.mark.parametrize(("median_ns", "seen"), [(150, False), (151, True)])
def test_the_median_with_prefill_must_be_half_as_long_again(median_ns: int, seen: bool) -> None:
    steps = (step(0, median_ns + i, "mixed", tokens=100 + i) for i in range(-2, 3))
    assert seen_with(*steps).present is seen


@pytest.mark.parametrize(
    ("decode_ns", "prefill_ns", "correlation", "seen"),
    [
        ((100, 100, 100, 450, 450), (400, 300, 700, 500, 600, 200), "0.49", False),
        ((100, 100, 100, 250, 350), (500, 600, 700, 200, 400, 300), "0.50", True),
    ],
)
def test_the_time_must_go_with_the_tokens(
    decode_ns: tuple[int, ...], prefill_ns: tuple[int, ...], correlation: str, seen: bool
) -> None:
    decode = [step(0, ns, "decode") for ns in decode_ns]
    prefill = [step(0, ns, "mixed", tokens=n) for n, ns in enumerate(prefill_ns, 1)]
    found = look(S7, facts_of(trace_of([kernel(0, 1)]), steps=steps_of(*decode, *prefill)))
    assert found.present is seen
    assert f"prefill tokens {correlation} (n = 11 steps)" in found.numbers


def test_slower_steps_without_token_counts_cannot_be_put_down_to_prefill() -> None:
    assert seen_with(*(step(0, 500, "mixed") for _ in range(TRACE_MIN_STEPS))).present is None


def test_prefill_cannot_be_compared_with_few_steps_or_none() -> None:
    assert seen_with(step(0, 500, "mixed", tokens=9)).present is None
    assert look(S7, facts_of(trace_of([kernel(0, 1)]))).present is None


def test_steps_without_device_work_are_not_compared() -> None:
    idle = [step(0, 0, "mixed", tokens=9, operations=0) for _ in range(TRACE_MIN_STEPS)]
    assert seen_with(*idle).present is None


def test_queueing_is_never_told_from_a_trace() -> None:
    seen = S11.check(facts_of(trace_of([kernel(0, 1)])))
    assert seen.present is None
    assert "events of each request and stage" in seen.numbers


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=15)


@given(PAIRS)
def test_rank_correlation_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    mine = rank_correlation(np.array(a), np.array(b))
    if len(set(a)) > 1 and len(set(b)) > 1:
        assert mine == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    else:
        assert mine == 0.0
