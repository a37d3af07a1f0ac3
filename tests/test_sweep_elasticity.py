"""The interval of an elasticity: repeats are blocks, and it covers what it says."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from layers.layer3_sweep.elasticity import change_spread, elasticities, pooled_spread
from layers.layer3_sweep.model import SweepPass, SweepPoint
from layers.layer3_sweep.points import Standing, points_of
from tests.sweep_builders import sweep_pass

Rates = npt.NDArray[np.float64]
RATES = {8: 80.0, 16: 110.0, 32: 120.0, 64: 121.0}


def points(rates: Rates) -> tuple[SweepPoint, ...]:
    """One row of rates a load (8, 16, ...), one column a repeat."""
    passes = [
        sweep_pass(load, repeat=column + 1, throughput_rps=float(rate))
        for load, row in zip(RATES, rates, strict=True)
        for column, rate in enumerate(row)
    ]
    return points_of(Standing(swept, True) for swept in passes)


def drawn(seed: int, repeats: int, noise: float, between_repeats: float) -> Rates:
    drawn = np.random.default_rng(seed)
    factors = np.exp(drawn.normal(0, between_repeats, repeats))
    each = np.exp(drawn.normal(0, noise, (len(RATES), repeats)))
    return np.array(list(RATES.values()))[:, None] * factors * each


def test_a_machine_that_is_slower_for_a_whole_repeat_widens_no_elasticity() -> None:
    rates = np.array(list(RATES.values()))[:, None] * np.array([1.0, 0.7, 1.2])
    seen = points(rates)
    within, plain = change_spread(seen), pooled_spread(seen)
    assert within is not None and plain is not None
    assert list(within) == pytest.approx([0, 6], abs=1e-12)
    assert list(plain) == pytest.approx([0.2603, 8], abs=1e-4)
    last = elasticities(seen)[-1]
    assert [last.low, last.high] == pytest.approx([last.value] * 2)


def test_the_residuals_are_those_of_a_two_way_layout() -> None:
    """By hand: logarithms 0, 0 / 0, d leave residuals of d/4 in each cell, and one degree of freedom."""
    step = 0.08
    rates = np.array([[1.0, 1.0], [1.0, math.exp(step)], [1.0, 1.0], [1.0, 1.0]])
    within = change_spread(points(rates)[:2])
    assert within is not None and list(within) == pytest.approx([step / 2, 1])


def test_points_that_lack_a_repeat_keep_the_plain_spread() -> None:
    whole = points(drawn(1, 3, 0.02, 0.1))
    passes: list[SweepPass] = [swept for point in whole for swept in point.passes]
    seen = points_of(Standing(swept, index != 4) for index, swept in enumerate(passes))
    assert change_spread(seen) == pooled_spread(seen) != change_spread(whole)


def test_one_repeat_gives_no_interval() -> None:
    seen = points(drawn(1, 1, 0.02, 0.1))
    assert change_spread(seen) is None
    assert elasticities(seen)[-1].low is None


@pytest.mark.parametrize("between_repeats", [0.0, 0.15])
def test_the_interval_covers_the_true_elasticity(between_repeats: float) -> None:
    """95 % of 400 sweeps, less 3.3 standard errors of a binomial."""
    true = math.log(RATES[64] / RATES[32]) / math.log(2)
    inside = 0
    for seed in range(400):
        last = elasticities(points(drawn(seed, 3, 0.03, between_repeats)))[-1]
        assert last.low is not None and last.high is not None
        inside += last.low <= true <= last.high
    assert inside >= 400 * (0.95 - 3.3 * math.sqrt(0.95 * 0.05 / 400))
