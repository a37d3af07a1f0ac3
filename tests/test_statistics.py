"""Shared statistics against scipy and against counting by hand."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from layers.evidence.statistics import (
    CONFIDENCE,
    TAIL,
    minimum_n_for_quantile,
    quantile_interval,
    quantile_ranks,
    wilson_interval,
)

QUANTILES = st.floats(0.02, 0.98)


@pytest.mark.parametrize(("quantile", "n"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_minimum_n_is_the_one_of_the_strength_table(quantile: float, n: int) -> None:
    assert minimum_n_for_quantile(quantile) == n


@given(QUANTILES)
def test_minimum_n_is_the_first_at_which_neither_tail_is_too_likely(quantile: float) -> None:
    first = next(n for n in count(1) if max(quantile**n, (1 - quantile) ** n) <= TAIL)
    assert minimum_n_for_quantile(quantile) == first


@given(QUANTILES, st.integers(1, 2000))
def test_ranks_enclose_the_quantile_with_the_stated_confidence(quantile: float, n: int) -> None:
    ranks = quantile_ranks(n, quantile)
    if ranks is None:
        assert n < minimum_n_for_quantile(quantile)
        return
    below = stats.binom(n, quantile)
    assert 1 <= ranks.low < ranks.high <= n
    assert ranks.low == below.ppf(TAIL) and ranks.high == below.ppf(1 - TAIL) + 1
    assert below.cdf(ranks.high - 1) - below.cdf(ranks.low - 1) >= CONFIDENCE


@pytest.mark.parametrize(
    ("n", "quantile", "ranks"), [(100, 0.9, (84, 96)), (500, 0.99, (490, 500)), (1000, 0.99, (983, 997))]
)
def test_ranks_agree_with_published_ones(n: int, quantile: float, ranks: tuple[int, int]) -> None:
    assert quantile_ranks(n, quantile) == ranks


@given(st.permutations(range(1, 41)))
def test_quantile_interval_reads_the_ranks_of_unsorted_values(values: list[int]) -> None:
    ranks = quantile_ranks(40, 0.9)
    assert ranks is not None
    assert quantile_interval(values, 0.9) == (np.quantile(values, 0.9), ranks.low, ranks.high, 40)


def test_too_few_values_have_no_quantile_interval() -> None:
    assert quantile_interval([1.0] * 35, 0.9) is None
    assert quantile_interval([1.0] * 36, 0.9) is not None


@given(st.data(), st.integers(1, 5000))
def test_wilson_interval_agrees_with_scipy(data: st.DataObject, n: int) -> None:
    hits = data.draw(st.integers(0, n))
    twin = stats.binomtest(hits, n).proportion_ci(CONFIDENCE, method="wilson")
    ours = wilson_interval(hits, n)
    assert (ours.value, ours.n) == (hits / n, n)
    assert (ours.low, ours.high) == pytest.approx((twin.low, twin.high), abs=1e-12)
