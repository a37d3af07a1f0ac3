"""Where a curve bends, by each definition: on curves whose bends are known."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.plan import Load
from layers.layer3_sweep.elasticity import elasticities, last_doubling, pooled_spread, throughput_interval
from layers.layer3_sweep.model import DeviceUse, Latency, Quantile, SweepPoint, Timing
from layers.layer3_sweep.named_points import Slo, find, named_points
from layers.layer3_sweep.points import Standing, at, points_of
from tests.sweep_builders import curve_passes, sweep_pass

CORNER = {1: 10.0, 2: 20.0, 4: 40.0, 8: 80.0, 16: 80.0, 32: 80.0}


def points(rates: Mapping[int, float], repeats: int = 1, spread: float = 0.0) -> tuple[SweepPoint, ...]:
    return points_of(Standing(s, True) for s in curve_passes(rates, repeats, spread=spread))


def load_of(name: str, of: tuple[SweepPoint, ...], *slos: Slo) -> float | None:
    found = find(named_points(of, slos), name)
    return found.concurrency if found else None


def test_a_corner_is_one_point_by_every_definition() -> None:
    corner = points(CORNER)
    for name in ("linear_limit", "power_optimum", "plateau_start", "asymptote"):
        assert load_of(name, corner) == 8, name


@given(st.floats(0.01, 1e4), st.lists(st.floats(0.5, 3.0), min_size=1, max_size=8))
def test_named_points_lie_on_the_curve_whatever_its_shape(first: float, factors: list[float]) -> None:
    rates = {1: first}
    for index, factor in enumerate(factors, 1):
        rates[2**index] = rates[2 ** (index - 1)] * factor
    named = named_points(points(rates))
    assert {p.concurrency for p in named if p.name != "asymptote"} <= set(rates)
    optimum = find(named, "power_optimum")
    if optimum is not None:
        power = {n: rate**2 / n for n, rate in rates.items()}
        assert power[int(optimum.concurrency)] == pytest.approx(max(power.values()))


@given(st.dictionaries(st.integers(1, 500), st.floats(0.1, 1e3), min_size=2, max_size=8))
def test_elasticities_add_up_over_the_steps(rates: dict[int, float]) -> None:
    """By definition: the product of rates^(step) is the rate at the end."""
    import math

    told = elasticities(points(dict(sorted(rates.items()))))
    grown = sum(step.value * math.log(step.end / step.start) for step in told)
    loads = sorted(rates)
    assert grown == pytest.approx(math.log(rates[loads[-1]] / rates[loads[0]]), abs=1e-9)


def test_an_elasticity_has_an_interval_out_of_the_pooled_spread_of_repeats() -> None:
    (alone,) = elasticities(points({1: 10, 2: 20}))
    assert (alone.low, alone.high) == (None, None)
    told = elasticities(points({1: 10, 2: 20, 4: 40}, repeats=4, spread=0.02))
    for step in told:
        assert step.low is not None and step.high is not None
        assert step.low < 1 < step.high and step.value == pytest.approx(1)
        assert step.high - step.value == pytest.approx(step.value - step.low)
    wider = elasticities(points({1: 10, 2: 20, 4: 40}, repeats=3, spread=0.04))
    assert wider[0].high is not None and told[0].high is not None and wider[0].high > told[0].high


def test_the_interval_of_a_throughput_is_that_of_its_own_repeats_where_all_loads_spread_alike() -> None:
    """By hand for one load: t of 3 - 1 = 2 degrees of freedom is 4.303."""
    one = points({4: 40}, repeats=3, spread=0.02)
    low, high = throughput_interval(one[0], pooled_spread(one)) or (0.0, 0.0)
    rates = [swept.throughput_rps for swept in one[0].passes]
    mean, half = statistics.fmean(rates), 4.303 * statistics.stdev(rates) / 3**0.5
    assert (low, high) == pytest.approx((mean - half, mean + half), rel=1e-4)
    assert throughput_interval(one[0], None) is None


def test_a_plateau_holds_to_the_end_of_the_curve() -> None:
    assert load_of("plateau_start", points({1: 10, 2: 20, 4: 20, 8: 40})) is None
    assert load_of("plateau_start", points({1: 10, 2: 20, 4: 20.2, 8: 20.1})) == 2
    assert load_of("plateau_start", points({1: 10, 2: 20, 4: 40})) is None


def test_a_step_above_a_plateau_that_repeats_do_not_tell_from_none_does_not_end_it() -> None:
    bumpy = {1: 10, 2: 20, 4: 19, 8: 20.5, 16: 20}
    assert load_of("plateau_start", points(bumpy)) == 8
    assert load_of("plateau_start", points(bumpy, repeats=3, spread=0.05)) == 2


def test_the_last_doubling_is_over_at_least_nearly_twice_the_load() -> None:
    loads = {n: 10.0 * n for n in (1, 2, 4, 64, 80, 128)}
    doubling = last_doubling(points(loads))
    assert doubling is not None and (at(doubling[0]), at(doubling[1])) == (64, 128)
    close = last_doubling(points({10: 1.0, 12: 1.0, 14: 1.0}))
    assert close is not None and at(close[0]) == 10
    assert last_doubling(points({4: 1.0})) is None


def with_tail(p99_ms: Mapping[int, float]) -> tuple[SweepPoint, ...]:
    def swept(n: int, ms: float) -> Standing:
        times = {Timing.E2E: Latency(1000, ms, 0.0, (Quantile(0.95, ms / 2), Quantile(0.99, ms)))}
        memory = DeviceUse("gpu 0", "nvml", "nvml_util_pct", 50.0, 9, n * 2.0**30)
        return Standing(sweep_pass(n, throughput_rps=10.0 * n, timings=times, devices=(memory,)), True)

    return points_of(swept(n, ms) for n, ms in p99_ms.items())


def test_of_an_open_loop_the_linear_limit_is_what_is_served_and_there_is_no_asymptote() -> None:
    rates = {1.0: 1.2, 10.0: 9.6, 20.0: 19.2, 30.0: 27.9, 35.0: 28.4}
    served = points_of(
        Standing(sweep_pass(load=Load(rate_per_s=r), throughput_rps=x), True) for r, x in rates.items()
    )
    assert load_of("linear_limit", served) == 30
    assert load_of("asymptote", served) is None


def test_p99_bends_where_its_slope_rises_most_and_the_memory_peak_there_is_told() -> None:
    bent = with_tail({1: 100, 2: 110, 4: 120, 8: 130, 16: 400, 32: 1300})
    found = find(named_points(bent), "p99_inflection")
    assert found is not None and found.concurrency == 8
    assert found.because == "e2e p99 130 ms here, 400 ms at 16; memory peak 8.0 GiB"
    assert load_of("p99_inflection", with_tail({1: 100, 2: 110})) is None
    assert load_of("p99_inflection", with_tail({1: 100, 2: 400, 4: 500})) is None


def test_an_slo_holds_up_to_the_first_load_that_breaks_it() -> None:
    told = with_tail({1: 100, 2: 200, 4: 900, 8: 150})
    assert load_of("slo_limit", told, Slo(Timing.E2E, 0.95, 250.0)) == 2
    assert load_of("slo_limit", told, Slo(Timing.E2E, 0.99, 50.0)) is None
    assert load_of("slo_limit", told, Slo(Timing.E2E, 0.99, 1000.0)) == 8
    assert load_of("slo_limit", told, Slo(Timing.TTFT, 0.99, 1000.0)) is None
