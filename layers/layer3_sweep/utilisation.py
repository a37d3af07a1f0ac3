"""How busy the devices were at each load, by every metric that was sampled, and what of it can be believed.

NVML's (nvidia-smi's) utilisation is the share of time in which any kernel was resident: one small kernel
after another reads 100 %, at one request as at a hundred. Where a metric is at its top from the lowest load
on, it tells nothing; where it is low it still tells, since it never reads too low. Memory utilisation and
power have no level that means "full" here: they show a direction and decide nothing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from layers.layer3_sweep.elasticity import last_doubling
from layers.layer3_sweep.model import SweepPoint, Trend, Utilisation
from layers.layer3_sweep.points import at, mean_over
from parsers.series_model import Metric

BEST_FIRST = (
    *(Metric.SM_ACTIVE_RATIO, Metric.DEVICE_OP_RATIO, Metric.GR_ACTIVE_RATIO),
    *(Metric.NVML_UTIL_PCT, Metric.MEMORY_UTIL_PCT, Metric.POWER_W),
)
"""How directly each says that the device is at work, best first."""
DIRECTION_ONLY = (Metric.MEMORY_UTIL_PCT, Metric.POWER_W)
PERCENT = (Metric.NVML_UTIL_PCT, Metric.MEMORY_UTIL_PCT)
PINNED_SHARE = 0.95
"""At or above it from the lowest load on a metric tells nothing: the public sweep of 8 H100 in
Wentao274/vllm-benchmark-test reads 100 % from 1 to 128 at a time, while throughput grows eightfold."""
MOVED_SHARE = 0.10
"""Of itself, for a metric to have fallen or risen. perfkit's choice: repeats of one load differ by less."""
DEVICE_FULL = 0.85
"""Of full: busy shares above it leave the host no more than a seventh of the time."""
IDLE_BESIDE = 0.05
"""Of the busiest device: one below it takes no part. perfkit's choice: ranks of one model, and even stages of
a pipeline on cards of their own, are closer."""


def utilisation_of(points: Sequence[SweepPoint]) -> tuple[Utilisation, ...]:
    """Every metric that was sampled at two loads or more, the most direct one first."""
    found = (_of_metric(points, metric) for metric in BEST_FIRST)
    return tuple(one for one in found if one is not None)


def telling(utilisation: Sequence[Utilisation]) -> Utilisation | None:
    """The most direct metric that may decide; None where there is none."""
    decides = (u for u in utilisation if u.metric not in DIRECTION_ONLY and u.trend is not Trend.USELESS)
    return next(decides, None)


def _of_metric(points: Sequence[SweepPoint], metric: Metric) -> Utilisation | None:
    told = [(p, value) for p in points if (value := device_mean(p, metric)) is not None]
    doubling = last_doubling([p for p, _ in told])
    if doubling is None:
        return None
    values = tuple((at(p), value) for p, value in told)
    before = dict(values)[at(doubling[0])]
    full = _full(metric)
    trend, because = _trend(values, before, full)
    return Utilisation(
        metric=str(metric),
        source=next(d.source for p, _ in told for s in p.passes for d in s.devices if d.metric == metric),
        values=values,
        trend=trend,
        share=values[-1][1] / full if full else None,
        because=because,
    )


def device_mean(point: SweepPoint, metric: str) -> float | None:
    """Mean over devices that took part, then over passes; None where one pass lacks it."""
    return mean_over(point, lambda swept: _of_pass([d.mean for d in swept.devices if d.metric == metric]))


def _of_pass(means: Sequence[float]) -> float | None:
    """Cards that the server does not use would halve the mean, or worse."""
    part = [mean for mean in means if mean >= IDLE_BESIDE * max(means)]
    return fmean(part) if part else None


def _full(metric: Metric) -> float | None:
    if metric in DIRECTION_ONLY:
        return None
    return 100.0 if metric in PERCENT else 1.0


def _trend(values: Sequence[tuple[float, float]], before: float, full: float | None) -> tuple[Trend, str]:
    first, last, peak = values[0], values[-1], max(values, key=lambda pair: pair[1])
    if full is not None and first[1] >= PINNED_SHARE * full:
        return Trend.USELESS, f"{first[1]:.3g} at {first[0]:g} already: any resident kernel counts as busy"
    if last[1] <= (1 - MOVED_SHARE) * peak[1]:
        return Trend.FALLING, f"{peak[1]:.3g} at {peak[0]:g}, {last[1]:.3g} at {last[0]:g}"
    said = f"{before:.3g} before the last doubling, {last[1]:.3g} at {last[0]:g}"
    return (Trend.RISING if last[1] >= (1 + MOVED_SHARE) * before else Trend.FLAT), said
