"""The rate follows from what one look costs, and a late capture is told from one that is only spread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.stacks.rates import (
    PAUSED_SHARE,
    RATES_HZ,
    chosen_rate,
    longest_s,
    paused_share,
    slower_rate,
)
from layers.collectors.stacks.tick_cost import QUIET_NS, bursts


@pytest.mark.parametrize(
    ("pause_ms", "rate"), [(None, 5), (0.4, 20), (2.5, 20), (4.0, 10), (9.0, 5), (20.0, 2), (500.0, 1)]
)
def test_the_rate_that_a_look_allows(pause_ms: float | None, rate: int) -> None:
    assert chosen_rate(pause_ms) == rate


@given(st.floats(0.01, 1000.0))
def test_no_chosen_rate_but_the_lowest_stops_the_target_for_longer_than_allowed(pause_ms: float) -> None:
    rate = chosen_rate(pause_ms)
    assert rate == RATES_HZ[-1] or paused_share(rate, pause_ms) <= PAUSED_SHARE


@pytest.mark.parametrize(("rate", "slower"), [(1000, 20), (20, 10), (10, 5), (5, 2), (2, 1), (1, None)])
def test_what_is_tried_after_a_rate_that_was_not_kept(rate: int, slower: int | None) -> None:
    assert slower_rate(rate) == slower


@pytest.mark.parametrize(("asked", "rate", "longest"), [(25.0, 20, 31.0), (25.0, 1, 47.0), (8.0, 5, 15.0)])
def test_slow_rates_spread_more(asked: float, rate: int, longest: float) -> None:
    assert longest_s(asked, rate) == pytest.approx(longest, abs=0.5)


def test_each_burst_of_the_profiler_is_one_look() -> None:
    million = 1_000_000
    used = [
        0,
        0,
        million,
        million,
        million + QUIET_NS,
        2 * million,
        3 * million,
        3 * million,
        4 * million,
        4 * million,
    ]
    assert bursts(used) == [million, 2 * million - QUIET_NS, million]


def test_a_profiler_that_sleeps_made_no_look() -> None:
    assert bursts([5, 5, 5]) == []
