"""The parts of the A/B rule against plain twins: paired t, floors, Holm, rejection, order and drift."""

from __future__ import annotations

import math
from statistics import median, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from layers.layer4_ab.detectable import (
    MOST_PAIRS,
    detectable,
    pairs_for_margin,
    pairs_needed,
    provable_margin,
)
from layers.layer4_ab.distribution import ecdf
from layers.layer4_ab.floors import Floor, FloorKind, floor_of_runs, pooled
from layers.layer4_ab.holm import holm
from layers.layer4_ab.order import drift, is_balanced, order_effect, schedule
from layers.layer4_ab.rejection import GAP_SHARE, LEAST_VALUES, ROBUST_Z, first_round_is_one, rejection
from layers.layer4_ab.rule import rule

logs = st.floats(-1, 1, allow_subnormal=False)


@st.composite
def two_arms(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    pairs = draw(st.integers(2, 9))
    return tuple(np.array(draw(st.lists(logs, min_size=pairs, max_size=pairs))) for _ in "ab")  # type: ignore[return-value]


@given(two_arms())
def test_interval_and_p_are_those_of_the_paired_t_test(two: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = two
    ruled = rule(a, b)
    d = [float(y - x) for x, y in zip(a, b, strict=True)]
    if stdev(d) < 1e-9:
        return
    twin = stats.ttest_rel(b, a)
    assert ruled.p == pytest.approx(twin.pvalue, rel=1e-6, abs=1e-12)
    low, high = twin.confidence_interval(0.95)
    assert ruled.mean - ruled.half_width == pytest.approx(low, abs=1e-9)
    assert ruled.mean + ruled.half_width == pytest.approx(high, abs=1e-9)


@given(two_arms(), st.floats(0.01, 1))
def test_equivalence_implies_both_one_sided_tests(two: tuple[np.ndarray, np.ndarray], margin: float) -> None:
    a, b = two
    ruled, d = rule(a, b, margin=margin), b - a
    if np.std(d) < 1e-9 or not ruled.equivalent:
        return
    assert stats.ttest_1samp(d, margin, alternative="less").pvalue < 0.05
    assert stats.ttest_1samp(d, -margin, alternative="greater").pvalue < 0.05


@given(two_arms(), st.floats(0, 0.5))
def test_swapped_arms_give_the_same_answer_with_the_other_sign(
    two: tuple[np.ndarray, np.ndarray], floor: float
) -> None:
    a, b = two
    one, other = rule(a, b, floor, 0.1), rule(b, a, floor, 0.1)
    assert one.mean == pytest.approx(-other.mean)
    assert (one.differs, one.equivalent) == (other.differs, other.equivalent)


@given(two_arms(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_higher_floor_only_takes_claims_away(
    two: tuple[np.ndarray, np.ndarray], floor: float, more: float
) -> None:
    assert rule(*two, floor + more, 0.2).differs <= rule(*two, floor, 0.2).differs
    assert rule(*two, floor + more, 0.2).equivalent <= rule(*two, floor, 0.2).equivalent


def test_without_a_margin_nothing_is_equivalent() -> None:
    same = np.zeros(6)
    assert not rule(same, same).equivalent
    assert rule(same, same, margin=0.01).equivalent


def test_a_drift_through_abba_has_no_part_in_the_mean_of_an_even_number_of_pairs() -> None:
    level = np.arange(8) * 0.004
    order = ["a", "b", "b", "a"] * 2
    a, b = (np.array([v for v, arm in zip(level, order, strict=True) if arm == one]) for one in "ab")
    assert rule(a, b).mean == pytest.approx(0)


def test_a_floor_of_two_runs_is_their_ratio_and_of_more_a_spread_that_pairs_shrink() -> None:
    two = floor_of_runs([0.0, 0.0082])
    assert two is not None and two.single
    assert two.of(4) == two.of(16) == pytest.approx(0.0082)
    more = floor_of_runs([0.00, 0.01, 0.02, 0.01])
    assert more is not None and not more.single
    spread = math.sqrt(2) * stdev([0.00, 0.01, 0.02, 0.01])
    assert more.of(4) == pytest.approx(stats.t.ppf(0.975, 3) * spread / 2)
    assert floor_of_runs([0.0]) is None


def test_earlier_floors_pool_by_their_freedom() -> None:
    one = Floor(FloorKind.MEASURED, 0.02, 4, 3)
    other = Floor(FloorKind.MEASURED, 0.04, 2, 0)
    both = pooled([one, other])
    assert both is not None and both.kind is FloorKind.HISTORY
    assert both.spread == pytest.approx(math.sqrt((3 * 0.02**2 + 0.04**2) / 4))
    assert both.runs == 6
    assert pooled([]) is None


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=1, max_size=6))
def test_holm_rejects_what_its_step_down_does(p: dict[str, float]) -> None:
    adjusted = holm(p)
    ordered = sorted(p.values())
    rejected = 0
    while rejected < len(p) and ordered[rejected] * (len(p) - rejected) <= 0.05:
        rejected += 1
    assert sum(value <= 0.05 for value in adjusted.values()) == rejected
    assert all(adjusted[name] >= value for name, value in p.items())


def test_pairs_needed_are_enough_and_no_fewer_even_number_is() -> None:
    spread, effect = 0.02, 0.03
    needed = pairs_needed(effect, spread, lambda n: 0.0)
    assert needed is not None and needed % 2 == 0
    assert detectable(needed, spread) <= effect * 1.02
    assert detectable(needed - 2, spread) > effect * 0.98


def test_no_number_of_pairs_sees_below_one_a_a_ratio() -> None:
    assert pairs_needed(0.01, 0.005, lambda n: 0.02) is None
    assert pairs_needed(0.0, 0.005, lambda n: 0.0) is None


def test_a_narrow_margin_takes_more_pairs() -> None:
    wide, narrow = (pairs_for_margin(margin, 0.01, lambda n: 0.0) for margin in (0.03, 0.01))
    assert wide is not None and narrow is not None and wide < narrow <= MOST_PAIRS
    assert provable_margin(narrow, 0.01) <= 0.0102


def test_detectable_effects_shrink_with_pairs_and_grow_with_noise() -> None:
    seen = [detectable(n, 0.01) for n in (2, 4, 6, 8, 16)]
    assert seen == sorted(seen, reverse=True)
    assert detectable(4, 0.02) == pytest.approx(2 * detectable(4, 0.01))


def test_one_far_value_is_rejected_and_a_near_one_is_not() -> None:
    assert rejection([10.0, 10.1, 9.9, 10.05, 5.0]).outliers == {4}
    assert rejection([10.0, 10.1, 9.9, 10.05, 8.5]).outliers == set()  # far by its spread, not by a fifth
    assert rejection([10.0, 10.1, 9.9, 5.0]).outliers == set()  # four values say nothing of the rest


def test_values_in_two_groups_are_all_kept() -> None:
    two = rejection([26.0, 26.02, 33.0, 33.01, 26.01, 33.02])
    assert two.two_states and not two.outliers
    few = rejection([33.0, 33.01, 26.0, 33.02, 32.99, 26.02])
    assert few.two_states and not few.outliers
    assert not rejection([26.0, 26.1, 26.3, 26.2, 26.15, 26.05]).two_states


@given(st.lists(st.floats(1, 100), min_size=LEAST_VALUES, max_size=12))
def test_what_is_rejected_is_far_in_both_ways(values: list[float]) -> None:
    for index in rejection(values).outliers:
        rest = values[:index] + values[index + 1 :]
        deviations = [abs(v - median(values)) for v in values]
        assert abs(values[index] - median(rest)) > GAP_SHARE * median(rest)
        assert abs(values[index] - median(values)) > ROBUST_Z * 1.48 * median(deviations)


def test_a_first_round_is_dropped_where_half_of_the_series_find_it_far() -> None:
    slow_first = [1.79, 1.07, 1.08, 1.07, 1.06, 1.07, 1.08]
    steady = [1.07, 1.08, 1.07, 1.06, 1.07, 1.08, 1.07]
    assert first_round_is_one([slow_first, slow_first])
    assert first_round_is_one([slow_first, steady])
    assert not first_round_is_one([steady, steady, slow_first])
    assert not first_round_is_one([[1.79, 1.07]])  # too few to say


def test_a_schedule_is_blocks_of_abba_or_baab() -> None:
    order = schedule(8, seed=1)
    blocks = {order[i : i + 4] for i in range(0, 16, 4)}
    assert blocks == {("a", "b", "b", "a"), ("b", "a", "a", "b")}
    assert schedule(8, seed=1) == order
    assert len(schedule(3, seed=1)) == 6


def test_balance_counts_who_was_first() -> None:
    assert is_balanced([True, False, True, False])
    assert is_balanced([True, False, True])
    assert not is_balanced([True, True, True, False])


def test_an_order_effect_is_what_the_second_of_a_pair_gains() -> None:
    seen = order_effect([0.021, -0.019, 0.019, -0.021], [True, False, True, False])
    assert seen is not None and seen.is_clear
    assert seen.value == pytest.approx(0.02)
    none = order_effect([0.02, 0.019, 0.021, 0.02], [True, False, True, False])
    assert none is not None and not none.is_clear
    assert order_effect([0.1, 0.2], [True, False]) is None


def test_a_drift_is_found_beside_an_effect_of_the_arms() -> None:
    positions = list(range(8))
    is_b = [False, True, True, False] * 2
    wobble = [0.0001, -0.0002, 0.0001, 0.0, -0.0001, 0.0002, -0.0001, 0.0]
    runs = [0.03 * p / 7 + 0.05 * b + w for p, b, w in zip(positions, is_b, wobble, strict=True)]
    seen = drift(positions, runs, is_b)
    assert seen is not None and seen.is_clear
    assert seen.value == pytest.approx(0.03, abs=0.001)
    still = drift(positions, [0.05 * b + w for b, w in zip(is_b, wobble, strict=True)], is_b)
    assert still is not None and not still.is_clear
    assert drift(positions[:4], runs[:4], is_b[:4]) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=400))
def test_a_distribution_in_few_points_lies_on_the_whole_one(values: list[float]) -> None:
    points = ecdf(values)
    assert len(points) == min(len(values), 100) and points[-1] == (1.0, max(values))
    ordered = sorted(values)
    for share, value in points:
        assert value == ordered[round(share * len(values)) - 1]
    assert list(points) == sorted(points)


def test_a_distribution_of_nothing_has_no_point() -> None:
    assert ecdf([]) == ()
