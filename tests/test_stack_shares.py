"""Shares of ticks: their intervals cover, and say what they rest on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.stack_coverage import Arm, try_arm
from layers.evidence.statistics import wilson_interval
from layers.layer2_stacks.shares import between, design_effect, estimate, smallest_visible, within

T_OF_2_DEGREES = 4.303
"""Student's t at 97.5 %, from its table."""
COUNTS = st.lists(
    st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1
)


@settings(max_examples=50)
@given(COUNTS, st.none() | st.floats(0.0, 50.0))
def test_the_interval_holds_the_share_and_lies_within_0_and_1(
    counts: list[tuple[int, int]], effect: float | None
) -> None:
    share = estimate([hit for hit, _ in counts], [n for _, n in counts], effect)
    slack = 1e-12
    assert 0.0 <= share.low <= share.value + slack
    assert share.value - slack <= share.high <= 1.0
    assert share.hits == sum(hit for hit, _ in counts)


@settings(max_examples=50)
@given(COUNTS.filter(lambda c: len(c) > 1))
def test_the_effect_between_captures_is_pearsons_chi_square(counts: list[tuple[int, int]]) -> None:
    hits, total = sum(hit for hit, _ in counts), sum(n for _, n in counts)
    if not 0 < hits < total:
        assert between(counts) is None
        return
    expected = [(n * hits / total, n * (total - hits) / total) for _, n in counts]
    cells = sum(
        (hit - e) ** 2 / e + (n - hit - m) ** 2 / m for (hit, n), (e, m) in zip(counts, expected, strict=True)
    )
    assert between(counts) == pytest.approx(cells / (len(counts) - 1))


def test_one_capture_without_order_is_wilsons_interval_and_says_so() -> None:
    share, wilson = estimate([30], [499]), wilson_interval(30, 499)
    assert (share.low, share.high) == (wilson.low, wilson.high)
    assert (share.method, share.design_effect, share.agrees) == (
        "Wilson, ticks taken as independent",
        None,
        None,
    )


def test_dependent_ticks_are_worth_less() -> None:
    share, fewer = estimate([100], [1000], within=4.0), wilson_interval(25, 250)
    assert (share.low, share.high) == pytest.approx((fewer.low, fewer.high))
    assert share.method == "Wilson, design effect 4.0"


def test_captures_that_differ_give_no_less_than_t_over_captures() -> None:
    share = estimate([50, 100, 150], [500, 500, 500])
    reach = T_OF_2_DEGREES * 0.1 / 3**0.5
    assert share.high - share.low >= 0.2 + reach  # t's own interval, cut off at 0
    assert share.agrees is False


def test_the_interval_names_t_over_captures_where_that_is_the_wider() -> None:
    assert estimate([100, 100, 101, 130], [500] * 4, within=1.0).method == "t over 4 captures"


def test_captures_that_are_alike_agree() -> None:
    assert estimate([100, 104, 97], [500, 500, 500]).agrees is True


def test_two_captures_show_their_range_where_it_is_wider() -> None:
    share = estimate([10, 490], [500, 500])
    assert (share.low, share.high) <= (0.02, 0.98)
    assert share.high >= 0.98


def test_a_capture_that_did_not_see_the_scope_is_left_out() -> None:
    assert estimate([30, 0], [499, 0]) == estimate([30], [499])
    with pytest.raises(ValueError, match="no capture"):
        estimate([0], [0])


def test_too_few_hits_tell_nothing_of_agreement() -> None:
    assert estimate([1, 0, 0], [500, 500, 500]).agrees is None


def test_no_hit_bounds_the_share_exactly() -> None:
    assert smallest_visible(300, None) == pytest.approx(1 - 0.05 ** (1 / 300))
    assert round(smallest_visible(300, None), 3) == 0.010
    assert smallest_visible(300, 3.0) == pytest.approx(smallest_visible(100, None))


def test_the_effect_is_never_below_1() -> None:
    assert (design_effect([0.2, None]), design_effect([None]), design_effect([3.0, 2.0])) == (1.0, None, 3.0)


def test_phases_show_as_a_design_effect_within_a_capture() -> None:
    phased = np.repeat(np.arange(20) % 2 == 0, 50)
    mixed = np.tile([True, False], 500)
    assert within([phased], 50) == pytest.approx(50.0 * 20 / 19)
    assert within([mixed], 50) == pytest.approx(0.0)
    assert within([phased[:100]], 50) is None
    assert within([np.ones(1000, bool)], 50) is None


@pytest.mark.parametrize(
    "arm", [Arm(0.2, 1.0, 3), Arm(0.2, 3.0, 3), Arm(0.2, 3.0, 5, ordered=True), Arm(0.1, 1.0, 5, spread=0.15)]
)
def test_intervals_cover_the_true_share_and_are_at_most_twice_an_oracles(arm: Arm) -> None:
    """A cheap form of the benchmark, with its seed: 200 trials of a true 95 % give 0.92 or more."""
    found = try_arm(arm, 200, seed=7)
    assert found.coverage >= 0.92
    assert found.width <= 2.0
