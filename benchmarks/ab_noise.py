"""What runs of two identical servers look like, in the ways that mislead an A/B.

Each kind of noise gives the logs of the runs of many simulated A/Bs, in their order of running; `arms` parts
them by the ABBA schedule. A run's own noise is RUN_SD; every server start adds its own, which all runs of it
share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from layers.layer4_ab.order import BLOCK

F64 = NDArray[np.float64]

RUN_SD = 0.01
"""Of the log of a run's throughput: 1 %."""
DRIFT, OUTLIER, SLOW_START, CORRELATION = 0.03, -0.30, -0.10, 0.5


class ArmLogs(NamedTuple):
    """Logs of the starts of both arms, an A/B a row, a pair a column."""

    a: F64
    b: F64


@dataclass(frozen=True, slots=True)
class Noise:
    """One way in which runs differ that have nothing to differ by."""

    name: str
    make: Callable[[np.random.Generator, int, int], F64]


def white(random: np.random.Generator, trials: int, runs: int) -> F64:
    """Each run on its own."""
    return RUN_SD * random.standard_normal((trials, runs))


def drifting(random: np.random.Generator, trials: int, runs: int) -> F64:
    """All runs together go DRIFT from the first to the last."""
    return white(random, trials, runs) + np.linspace(0.0, DRIFT, runs)


def one_outlier(random: np.random.Generator, trials: int, runs: int) -> F64:
    """One run of each A/B met a neighbour."""
    return _with_one(random, white(random, trials, runs), OUTLIER)


def one_slow_start(random: np.random.Generator, trials: int, runs: int) -> F64:
    """One server of each A/B came up slower than the others."""
    return _with_one(random, white(random, trials, runs), SLOW_START)


def autocorrelated(random: np.random.Generator, trials: int, runs: int) -> F64:
    """Each run is like the one before it: a first-order process with CORRELATION."""
    noise = white(random, trials, runs)
    for run in range(1, runs):
        noise[:, run] *= np.sqrt(1 - CORRELATION**2)
        noise[:, run] += CORRELATION * noise[:, run - 1]
    return noise


def starts(ratio: float) -> Callable[[np.random.Generator, int, int], F64]:
    """Each start has noise of its own, `ratio` times that of a run."""

    def make(random: np.random.Generator, trials: int, runs: int) -> F64:
        return white(random, trials, runs) + ratio * white(random, trials, runs)

    return make


NOISES = (
    Noise("run-level noise", white),
    Noise("drift of 3 %", drifting),
    Noise("an outlier round", one_outlier),
    Noise("autocorrelated rounds", autocorrelated),
    Noise("one slow start", one_slow_start),
    *(Noise(f"start noise {ratio:g} x the run's", starts(ratio)) for ratio in (0.5, 1.0, 2.0)),
)


def arms(runs: F64) -> ArmLogs:
    """Runs in their order as pairs, by the ABBA schedule."""
    pairs = runs.shape[1] // 2
    order = np.resize(np.asarray(BLOCK), 2 * pairs)
    return ArmLogs(runs[:, order == "a"], runs[:, order == "b"])


def _with_one(random: np.random.Generator, runs: F64, by: float) -> F64:
    trials = len(runs)
    runs[np.arange(trials), random.integers(0, runs.shape[1], trials)] += by
    return runs
