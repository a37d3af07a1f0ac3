"""The scalability law: known parameters come back, and a curve that it does not describe is not given one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.plan import Load
from layers.layer3_sweep.model import SweepPoint, Usl
from layers.layer3_sweep.points import Standing, points_of
from layers.layer3_sweep.usl import fit_usl, predict
from tests.sweep_builders import curve_passes, sweep_pass

LOADS = (1, 2, 4, 8, 16, 32, 64)


def points(rates: dict[int, float], repeats: int = 3, spread: float = 0.0) -> tuple[SweepPoint, ...]:
    passes = curve_passes(rates, repeats, spread=spread)
    return points_of(Standing(swept, True) for swept in passes)


def law(gamma: float, alpha: float, beta: float) -> dict[int, float]:
    rates = predict(np.array(LOADS, np.float64), gamma, alpha, beta)
    return dict(zip(LOADS, rates.tolist(), strict=True))


def fitted(rates: dict[int, float], spread: float = 0.0) -> Usl:
    usl, refused = fit_usl(points(rates, spread=spread))
    assert usl is not None, refused
    return usl


@given(st.floats(0.01, 100), st.floats(0.001, 0.9), st.floats(0, 0.01))
def test_known_parameters_come_back(gamma: float, alpha: float, beta: float) -> None:
    usl = fitted(law(gamma, alpha, beta))
    assert usl.gamma[0] == pytest.approx(gamma, rel=1e-3)
    assert usl.alpha[0] == pytest.approx(alpha, rel=1e-2, abs=1e-4)
    assert usl.beta[0] == pytest.approx(beta, rel=1e-2, abs=1e-5)
    assert usl.r2 > 0.999 and usl.fits


@given(st.integers(0, 2**16))
def test_the_interval_of_a_noisy_curve_holds_what_made_it_and_beta_stays_above_0(seed: int) -> None:
    """Noise of 1 %; an interval at 95 %, three times as wide, does not miss."""
    noise, true = np.random.default_rng(seed), (10.0, 0.05, 0.0005)
    passes = [
        sweep_pass(n, repeat=repeat, throughput_rps=rate * (1 + 0.01 * noise.standard_normal()))
        for n, rate in law(*true).items()
        for repeat in (1, 2, 3)
    ]
    usl, _ = fit_usl(points_of(Standing(swept, True) for swept in passes))
    assert usl is not None
    for (value, low, high), wanted in zip((usl.gamma, usl.alpha, usl.beta), true, strict=True):
        assert low >= 0
        assert value - 3 * (high - value) <= wanted <= value + 3 * (high - value)


def test_the_peak_is_told_only_where_beta_is_clear_of_0() -> None:
    assert fitted(law(10, 0.05, 0.002), spread=0.01).peak == pytest.approx((0.95 / 0.002) ** 0.5, rel=0.1)
    assert fitted(law(10, 0.05, 0.0), spread=0.01).peak is None


def test_a_corner_is_no_such_curve() -> None:
    """Linear up to 8 and flat after it: the spread of repeats does not explain how far off it is."""
    corner = {n: 10.0 * min(n, 8) for n in LOADS}
    usl = fitted(corner, spread=0.01)
    assert not usl.fits and usl.because.startswith("lack of fit p = ")
    wide = fitted(corner, spread=0.5)
    assert wide.fits


def test_equal_repeats_leave_only_the_distance_of_the_means() -> None:
    near = law(10, 0.05, 0.0)
    assert fitted(near).fits
    near[16] *= 1.2
    assert not fitted(near).fits


def test_without_repeats_the_fit_is_told_and_not_believed() -> None:
    usl, _ = fit_usl(points(law(10, 0.05, 0.0), repeats=1))
    assert usl is not None and not usl.fits
    assert usl.because.startswith("not tested: no load has a repeat")


def test_a_fit_is_refused_with_its_reason() -> None:
    few = {n: rate for n, rate in law(10, 0.05, 0).items() if n <= 16}
    assert fit_usl(points(few)) == (None, "5 loads: 6 are needed for three parameters")
    open_loop = points_of([Standing(sweep_pass(load=Load(rate_per_s=2.0)), True)])
    assert "open loop" in fit_usl(open_loop)[1]
