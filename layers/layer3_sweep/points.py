"""Passes grouped into curves and points, and what a point says of itself as a mean over its passes. Pure.

A curve is one arm with one set of settings. Its points lie in the order of load; a pass that a void guard
took out stays with its point and enters no mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from layers.collectors.load.plan import Load
from layers.layer3_sweep.model import Counts, Curve, SweepPass, SweepPoint, Timing

MEDIAN, P90, P95, P99 = 0.5, 0.9, 0.95, 0.99


class CurveKey(NamedTuple):
    """What tells curves apart: the arm, and the settings of a cell of a grid."""

    arm: str
    settings: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """`control, batch=8`; empty for the one curve of a plain sweep."""
        return ", ".join(part for part in (self.arm, *(f"{k}={v}" for k, v in self.settings)) if part)


class Standing(NamedTuple):
    """One pass, and whether its guards let it stand."""

    swept: SweepPass
    stands: bool


def key_of(swept: SweepPass) -> CurveKey:
    """The curve that a pass belongs to."""
    return CurveKey(swept.arm, tuple(sorted(swept.settings.items())))


def load_value(load: Load) -> float:
    """The number of a load on its axis: requests in flight, or arrivals a second."""
    return float(load.concurrency if load.concurrency is not None else load.rate_per_s or math.nan)


def scope_of(swept: SweepPass) -> str:
    """Which pass, in words: `control, 8 at a time, repeat 2`."""
    return ", ".join(part for part in (key_of(swept).text, str(swept.load), f"repeat {swept.repeat}") if part)


def scope_of_curve(curve: Curve) -> str:
    """Which curve, in words; empty for the one curve of a plain sweep."""
    return CurveKey(curve.arm, tuple(sorted(curve.settings.items()))).text


def point_scope(curve: Curve, point: SweepPoint) -> str:
    """Which point, in words: `control, 8 at a time`."""
    return ", ".join(part for part in (scope_of_curve(curve), str(point.load)) if part)


def device_metrics(point: SweepPoint) -> list[str]:
    """The metrics that were sampled at a point, each once."""
    return list(dict.fromkeys(use.metric for swept in point.passes for use in swept.devices))


def points_of(standings: Iterable[Standing]) -> tuple[SweepPoint, ...]:
    """The points of one curve, of one kind of load, in its order; void ones included."""
    by_load: dict[float, list[Standing]] = {}
    for one in standings:
        by_load.setdefault(load_value(one.swept.load), []).append(one)
    return tuple(_point(by_load[load]) for load in sorted(by_load))


def _point(standings: Sequence[Standing]) -> SweepPoint:
    ordered = sorted(standings, key=lambda one: one.swept.repeat)
    passes = tuple(one.swept for one in ordered if one.stands)
    rates = [swept.throughput_rps for swept in passes]
    return SweepPoint(
        load=ordered[0].swept.load,
        passes=passes,
        void=tuple(one.swept for one in ordered if not one.stands),
        throughput_rps=fmean(rates) if rates else None,
        throughput_sd=stdev(rates) if len(rates) > 1 else None,
    )


def at(point: SweepPoint) -> float:
    """The load of a point as a number."""
    return load_value(point.load)


def rate(point: SweepPoint) -> float:
    """Throughput of a point that stands, in requests a second."""
    assert point.throughput_rps is not None
    return point.throughput_rps


def mean_over(point: SweepPoint, of: Callable[[SweepPass], float | None]) -> float | None:
    """A mean over the passes that stand; None where one of them lacks it."""
    values = [of(swept) for swept in point.passes]
    told = [value for value in values if value is not None]
    return fmean(told) if told and len(told) == len(values) else None


def mean_ms(point: SweepPoint, timing: Timing) -> float | None:
    """The mean of a time over the passes of a point."""
    return mean_over(point, lambda swept: t.mean_ms if (t := swept.timings.get(timing)) else None)


def quantile_ms(point: SweepPoint, timing: Timing, quantile: float) -> float | None:
    """The mean over passes of one quantile of a time."""
    return mean_over(
        point, lambda swept: t.quantile_ms(quantile) if (t := swept.timings.get(timing)) else None
    )


class Tail(NamedTuple):
    """One high quantile of one time at several points, in their order."""

    timing: Timing
    quantile: float
    values_ms: tuple[float, ...]

    @property
    def text(self) -> str:
        """`e2e p95 goes from 120 to 640 ms`."""
        first, last = self.values_ms[0], self.values_ms[-1]
        return f"{self.timing} p{100 * self.quantile:g} goes from {first:,.0f} to {last:,.0f} ms"


def tail(points: Sequence[SweepPoint], quantiles: Sequence[float] = (P95, P99)) -> Tail | None:
    """The first of these quantiles that is there at all of the points, of the whole request before its first
    output; None where no time has one at all of them."""
    for quantile in quantiles:
        for timing in (Timing.E2E, Timing.TTFT, Timing.FIRST_AUDIO):
            told = [ms for p in points if (ms := quantile_ms(p, timing, quantile)) is not None]
            if told and len(told) == len(points):
                return Tail(timing, quantile, tuple(told))
    return None


def residence_s(point: SweepPoint) -> float | None:
    """Mean time that a request spends: end to end where it was measured, else N / X (Little 1961)."""
    e2e = mean_ms(point, Timing.E2E)
    if e2e is not None:
        return e2e / 1000
    if point.load.concurrency is None or not point.throughput_rps:
        return None
    return point.load.concurrency / point.throughput_rps


def counts_of(point: SweepPoint) -> Counts:
    """What became of all requests of the passes that stand."""
    outcomes: dict[str, int] = {}
    for swept in point.passes:
        for word, n in swept.counts.by_outcome.items():
            outcomes[word] = outcomes.get(word, 0) + n
    attempts = [swept.counts.attempts for swept in point.passes]
    told = [n for n in attempts if n is not None]
    return Counts(
        ok=sum(swept.counts.ok for swept in point.passes),
        shed=sum(swept.counts.shed for swept in point.passes),
        errors=sum(swept.counts.errors for swept in point.passes),
        attempts=sum(told) if told and len(told) == len(attempts) else None,
        by_outcome=outcomes,
        untold=frozenset[str]().union(*(swept.counts.untold for swept in point.passes)),
    )


def within_budget(curve: Curve) -> list[SweepPoint]:
    """The points that a class is called by: they stand, served something, and did not fail too often."""
    return [p for p in curve.points if p.stands and p.throughput_rps and p not in curve.overloaded]


def failed_share(point: SweepPoint) -> float:
    """Sheds and errors of all requests."""
    counts = counts_of(point)
    return (counts.shed + counts.errors) / counts.asked if counts.asked else 0.0
