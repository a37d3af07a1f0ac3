"""The Universal Scalability Law on one curve: fitted, tested, and refused where it says nothing. Pure.

    X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))

gamma is the rate of one request alone, alpha the share that waits for one another (contention), beta what
each costs every other (coherency); with beta clear of 0 throughput falls past its peak (Gunther, Guerrilla
Capacity Planning, 2007). It is a model of fixed work: a server that batches up to a limit has a corner that
it does not have, which its lack-of-fit test finds. Bounded least squares over all repeats; intervals by the
delta method; a parameter whose interval reaches 0 is not told from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from layers.evidence.statistics import CONFIDENCE, TAIL
from layers.evidence.wording import counted, pct
from layers.layer3_sweep.model import SweepPoint, Usl
from layers.layer3_sweep.points import at
from parsers.series_model import F64

LEAST_LOADS = 6
"""Three parameters and as many loads again: fewer fit any bend (Gunther asks for half a dozen)."""
CLOSE = 0.03
"""A fit whose every mean is nearer than this is good enough whatever the test says: very even repeats make
any model fail. perfkit's choice: the spread of repeats of a quiet server."""
PARAMETERS = 3


class Samples(NamedTuple):
    """Load and throughput of every repeat that stands, arrays of shape (n,)."""

    load: F64
    rate: F64


class Fit(NamedTuple):
    """gamma, alpha, beta with the half-widths of their intervals."""

    values: F64
    halves: F64


def fit_usl(points: Sequence[SweepPoint]) -> tuple[Usl | None, str]:
    """The fit of a curve's points that stand, or None and why there is none."""
    if any(point.load.concurrency is None for point in points):
        return None, "an open loop: the law is about requests in flight, not about arrivals"
    if len(points) < LEAST_LOADS:
        return None, f"{counted(len(points), 'load')}: {LEAST_LOADS} are needed for three parameters"
    samples = _samples(points)
    fit = _fit(samples)
    if fit is None:
        return None, "the loads do not tell its three parameters apart"
    return _told(fit, samples), ""


def predict(load: F64, gamma: float, alpha: float, beta: float) -> F64:
    """Throughput at each load."""
    return gamma * load / (1 + alpha * (load - 1) + beta * load * (load - 1))


def _samples(points: Sequence[SweepPoint]) -> Samples:
    pairs = [(at(point), swept.throughput_rps) for point in points for swept in point.passes]
    load, rate = np.array(pairs, np.float64).T
    return Samples(load, rate)


def _fit(samples: Samples) -> Fit | None:
    """Bounded least squares; None where the covariance of the parameters does not exist."""
    from scipy.optimize import least_squares
    from scipy.special import stdtrit

    solved = least_squares(
        lambda p: predict(samples.load, *p) - samples.rate,
        _start(samples),
        bounds=([0, 0, 0], [np.inf, 1, np.inf]),
        x_scale="jac",
    )
    freedom = len(samples.load) - PARAMETERS
    scale = np.sqrt((solved.jac**2).sum(axis=0))
    if not scale.all() or np.linalg.matrix_rank(solved.jac / scale) < PARAMETERS:
        return None
    errors = _errors(solved.jac / scale, solved.fun) / scale
    return Fit(solved.x, stdtrit(freedom, 1 - TAIL) * errors)


def _errors(jacobian: F64, residuals: F64) -> F64:
    """Standard errors by the delta method where the spread grows with the rate, as that of throughputs does
    (HC3: MacKinnon and White 1985); a common spread would call the high loads, which beta hangs on, too sure.
    """
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    leverage = np.einsum("ij,jk,ik->i", jacobian, inverse, jacobian)
    weighted = jacobian * (residuals / np.maximum(1 - leverage, np.finfo(np.float64).eps))[:, None]
    return np.asarray(np.sqrt(np.diag(inverse @ weighted.T @ weighted @ inverse)))


def _start(samples: Samples) -> list[float]:
    """Linear through the lowest load, with the contention that its roof would have."""
    first = int(np.argmin(samples.load))
    gamma = samples.rate[first] / samples.load[first]
    return [gamma, float(np.clip(gamma / samples.rate.max(), 1e-3, 0.999)), 1e-6]


def _told(fit: Fit, samples: Samples) -> Usl:
    residuals = samples.rate - predict(samples.load, *fit.values)
    spread = float(((samples.rate - samples.rate.mean()) ** 2).sum())
    fits, because = _lack_of_fit(samples, residuals)
    _, alpha, beta = fit.values
    clear = beta - fit.halves[2] > 0
    return Usl(
        gamma=_interval(fit, 0),
        alpha=_interval(fit, 1),
        beta=_interval(fit, 2),
        r2=1 - float((residuals**2).sum()) / spread if spread else 0.0,
        n=len(samples.load),
        fits=fits,
        because=because,
        peak=math.sqrt((1 - alpha) / beta) if clear and alpha < 1 else None,
    )


def _interval(fit: Fit, index: int) -> tuple[float, float, float]:
    """No parameter is below 0."""
    value, half = float(fit.values[index]), float(fit.halves[index])
    return value, max(0.0, value - half), value + half


def _lack_of_fit(samples: Samples, residuals: F64) -> tuple[bool, str]:
    """Whether the means lie off the curve by no more than repeats explain (F test of lack of fit, Draper and
    Smith 1998, chapter 2), or by less than CLOSE; not without repeats."""
    loads = np.unique(samples.load)
    means = np.array([samples.rate[samples.load == load].mean() for load in loads])
    off = np.array([residuals[samples.load == load].mean() for load in loads])
    worst = int(np.argmax(np.abs(off / means)))
    furthest = float(abs(off[worst] / means[worst]))
    said = f"furthest off at {loads[worst]:g}: {pct(furthest)}"
    pure_freedom = len(samples.rate) - len(loads)
    if not pure_freedom:
        return False, f"not tested: no load has a repeat; {said}"
    counts = np.array([(samples.load == load).sum() for load in loads])
    lack = float((counts * off**2).sum()) / (len(loads) - PARAMETERS)
    pure = (float((residuals**2).sum()) - float((counts * off**2).sum())) / pure_freedom
    chance = _chance(lack, pure, len(loads) - PARAMETERS, pure_freedom)
    return chance >= 1 - CONFIDENCE or furthest <= CLOSE, f"lack of fit p = {chance:.3g}; {said}"


def _chance(lack: float, pure: float, lack_freedom: int, pure_freedom: int) -> float:
    """Of a ratio at least as large where the model is true; 0 where repeats are equal to the last digit."""
    from scipy.special import fdtrc

    return float(fdtrc(lack_freedom, pure_freedom, lack / pure)) if pure > 0 else 0.0
