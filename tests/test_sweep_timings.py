"""Times of requests: what counts, failures as infinite, and intervals against a brute-force binomial twin."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.records import Audio, Outcome, RequestRecord, Usage
from layers.evidence.statistics import minimum_n_for_quantile
from layers.layer3_sweep.model import Latency, Timing
from layers.layer3_sweep.timings import QUANTILES, gaps_ns, latency_of, rtf_of, timings_of, tpot_ns
from tests.sweep_builders import NS_PER_MS, record

VALUES = st.lists(st.floats(0.1, 1e5), min_size=1, max_size=120)


def of(values: list[float], failures: int = 0) -> Latency:
    latency = latency_of(values, failures)
    assert latency is not None
    return latency


def streamed(sequence: int, *event_ms: float, **other: Any) -> RequestRecord:
    events = tuple(int(ms * NS_PER_MS) for ms in event_ms)
    return dataclasses.replace(record(sequence, 0, event_ms[-1] + 1), event_ns=events, **other)


def chances_of_at_most(n: int, p: Fraction) -> list[Fraction]:
    """Of a binomial count, for every count from 0 on, in exact arithmetic."""
    weights = (math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1))
    return list(itertools.accumulate(weights))


@pytest.mark.parametrize("n", [1, 5, 6, 7, 35, 36, 50, 71, 72, 73, 100])
@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.95])
def test_a_quantile_is_there_exactly_where_two_order_statistics_enclose_it(n: int, quantile: float) -> None:
    """The twin tries all ranks by exact binomial sums; the values are their own ranks."""
    tail, chances = Fraction("0.025"), [Fraction(0), *chances_of_at_most(n, Fraction(str(quantile)))]
    low = max((rank for rank in range(1, n + 1) if chances[rank] <= tail), default=None)
    high = min((rank for rank in range(1, n + 1) if 1 - chances[rank] <= tail), default=None)
    latency = of([float(rank) for rank in range(1, n + 1)])
    told = [(q.low_ms, q.high_ms) for q in latency.quantiles if q.quantile == quantile]
    assert told == ([] if low is None or high is None else [(low, high)])


@given(VALUES)
def test_values_lie_in_their_intervals_and_intervals_among_the_values(values: list[float]) -> None:
    latency = of(values)
    assert latency.n == len(values) and latency.max_ms == max(values)
    for q in latency.quantiles:
        assert len(values) >= minimum_n_for_quantile(q.quantile)
        assert q.low_ms is not None and q.high_ms is not None
        assert min(values) <= q.low_ms <= q.high_ms <= max(values)


@given(VALUES, st.integers(1, 60))
def test_failures_count_as_infinite_by_nearest_rank(values: list[float], failures: int) -> None:
    """The twin sorts the values with the failures behind them and counts."""
    ordered = [*sorted(values), *[math.inf] * failures]
    told = {q.quantile: q.value_ms for q in of(values, failures).with_failures}
    for quantile in QUANTILES:
        enough = len(ordered) >= minimum_n_for_quantile(quantile)
        at_rank = next(v for v in ordered if sum(w <= v for w in ordered) >= quantile * len(ordered))
        assert told.get(quantile) == (at_rank if enough and math.isfinite(at_rank) else None)


def test_without_failures_nothing_is_told_twice() -> None:
    assert of([1.0] * 40).with_failures == ()


def test_one_value_has_no_spread_and_none_has_no_latency() -> None:
    assert (of([3.0]).sd_ms, of([3.0]).mean_ms, of([3.0]).quantiles) == (None, 3.0, ())
    assert latency_of([], 5) is None


def test_time_per_token_leaves_out_the_tokens_of_the_first_event() -> None:
    four = Usage(completion_tokens=4)
    assert tpot_ns(streamed(0, 10, 20, 40, usage=four)) == 10 * NS_PER_MS
    assert tpot_ns(streamed(0, 10, 20, 40, usage=four, event_tokens=(2, 1, 1))) == 15 * NS_PER_MS
    assert tpot_ns(streamed(0, 10, 20, 40)) is None
    assert tpot_ns(streamed(0, 10, usage=four)) is None
    assert tpot_ns(streamed(0, 10, 20, usage=four, event_tokens=(4, 0))) is None


@given(st.lists(st.integers(0, 10**9), max_size=20))
def test_gaps_add_up_to_the_time_between_the_first_and_the_last_event(events: list[int]) -> None:
    ordered = tuple(sorted(events))
    gaps = gaps_ns(dataclasses.replace(record(0, 0, 1), event_ns=ordered))
    assert len(gaps) == max(0, len(ordered) - 1) and min(gaps, default=0) >= 0
    assert sum(gaps) == (ordered[-1] - ordered[0] if ordered else 0)


def test_the_first_gap_is_not_the_time_to_the_first_event() -> None:
    times = timings_of([streamed(0, 100, 110, 120), streamed(1, 100, 130)])
    assert times[Timing.TTFT].mean_ms == 100
    assert times[Timing.ITL].n == 3 and times[Timing.ITL].mean_ms == pytest.approx(50 / 3)


def test_answers_that_came_in_one_piece_have_no_time_to_the_first_output() -> None:
    assert Timing.TTFT not in timings_of([streamed(0, 100), streamed(1, 90)])
    assert Timing.TTFT in timings_of([streamed(0, 100), streamed(1, 80, 90)])


def test_spoken_answers_have_a_first_audio_instead_of_a_first_token() -> None:
    times = timings_of([streamed(0, 50, 60, audio=Audio(2.0, 24000, 96000, "", 0.0))])
    assert times[Timing.FIRST_AUDIO].mean_ms == 50 and Timing.TTFT not in times


def test_failed_requests_have_a_send_lag_and_no_latency() -> None:
    late = record(0, 0, 10, sent_ns=3 * NS_PER_MS)
    failed = record(1, 0, 500, sent_ns=5 * NS_PER_MS, outcome=Outcome.TIMEOUT_TOTAL)
    times = timings_of([late, failed])
    assert (times[Timing.E2E].n, times[Timing.E2E].max_ms) == (1, 10)
    assert (times[Timing.SEND_LAG].n, times[Timing.SEND_LAG].mean_ms) == (2, 4)
    assert set(timings_of([failed])) == {Timing.SEND_LAG}


def test_real_time_factor_is_over_the_seconds_of_the_answers_own_audio() -> None:
    short = streamed(0, 499, audio=Audio(0.5, 24000, 1, "", None))
    long = streamed(1, 999, audio=Audio(4.0, 24000, 1, "", None))
    told = rtf_of([short, long, record(2, 0, 10, outcome=Outcome.SHED)])
    assert told is not None and told.n == 2
    assert told.mean_ms == pytest.approx((1.0 + 0.25) / 2) and "ratio" in told.definition
    assert rtf_of([record(0, 0, 10)]) is None
