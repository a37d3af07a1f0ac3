"""The numbers of a sweep that findings rest on: throughput, times, use of devices, accuracy of each point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.measurement import Artifact, Measurement
from layers.layer3_sweep.model import Curve, SweepPoint, Timing
from layers.layer3_sweep.points import (
    MEDIAN,
    P95,
    P99,
    counts_of,
    device_metrics,
    point_scope,
    quantile_ms,
    rate,
)
from layers.layer3_sweep.utilisation import PERCENT, device_mean

THROUGHPUT, FAILED, ACCURACY = "throughput_rps", "failed_share", "accuracy"
TOLD = (Timing.E2E, Timing.TTFT, Timing.FIRST_AUDIO, Timing.TPOT, Timing.ITL)
QUANTILES = {MEDIAN: "p50", P95: "p95", P99: "p99"}


def curve_measurements(curve: Curve) -> list[Measurement]:
    """Of every point that stands, in the order of load; the scope names the point."""
    return [m for point in curve.points if point.stands for m in _of_point(curve, point)]


def time_name(timing: Timing, quantile: float) -> str:
    """`e2e_p95_ms`."""
    return f"{timing}_{QUANTILES[quantile]}_ms"


def _of_point(curve: Curve, point: SweepPoint) -> Iterator[Measurement]:
    scope, source = point_scope(curve, point), ", ".join(sorted({swept.source for swept in point.passes}))
    artifact = next((swept.artifact for swept in point.passes if swept.artifact), None)
    yield Measurement(
        name=THROUGHPUT,
        value=rate(point),
        unit="req/s",
        n=len(point.passes),
        n_unit="repeats",
        method=f"{source}: requests served over the length of the window, mean over repeats",
        artifact=artifact,
        scope=scope,
        raw=tuple(swept.throughput_rps for swept in point.passes),
    )
    counts = counts_of(point)
    if counts.asked:
        yield Measurement(
            name=FAILED,
            value=(counts.shed + counts.errors) / counts.asked,
            unit="share",
            n=counts.asked,
            n_unit="requests",
            method=f"{source}: requests that were shed or failed, by their last attempt",
            artifact=artifact,
            scope=scope,
        )
    yield from _times(point, scope, source, artifact)
    yield from _use(point, scope, artifact)
    yield from _accuracy(point, scope, artifact)


def _times(point: SweepPoint, scope: str, source: str, artifact: Artifact | None) -> Iterator[Measurement]:
    """Quantiles that every repeat allows; those of single repeats are in `raw`."""
    for timing in TOLD:
        latencies = [swept.timings[timing] for swept in point.passes if timing in swept.timings]
        for quantile in QUANTILES:
            value = quantile_ms(point, timing, quantile)
            if value is None:
                continue
            counts = [latency.n for latency in latencies if latency.n]
            known = len(counts) == len(latencies)
            yield Measurement(
                name=time_name(timing, quantile),
                value=value,
                unit="ms",
                n=sum(counts) if known else len(latencies),
                n_unit=("gaps" if timing is Timing.ITL else "requests") if known else "repeats",
                method=f"{source}: {latencies[0].definition or timing}; mean over repeats of the quantile",
                artifact=artifact,
                scope=scope,
                raw=tuple(ms for one in latencies if (ms := one.quantile_ms(quantile)) is not None),
            )


def _use(point: SweepPoint, scope: str, artifact: Artifact | None) -> Iterator[Measurement]:
    for metric in device_metrics(point):
        value = device_mean(point, metric)
        uses = [use for swept in point.passes for use in swept.devices if use.metric == metric]
        samples = sum(use.n for use in uses)
        if value is None or not samples:
            continue
        yield Measurement(
            name=metric,
            value=value,
            unit="%" if metric in PERCENT else "W" if metric.endswith("_w") else "share",
            n=samples,
            n_unit="samples",
            method=f"{uses[0].source}: mean over the window, over devices and over repeats",
            artifact=uses[0].artifact or artifact,
            scope=scope,
            raw=tuple(use.mean for use in uses),
        )


def _accuracy(point: SweepPoint, scope: str, artifact: Artifact | None) -> Iterator[Measurement]:
    told = [swept.accuracy for swept in point.passes if swept.accuracy is not None and swept.accuracy.items]
    if not told:
        return
    items = sum(one.items for one in told)
    yield Measurement(
        name=ACCURACY,
        value=sum(one.value * one.items for one in told) / items,
        unit=told[0].metric,
        n=items,
        n_unit="items",
        method=f"{told[0].metric} of the answers that can be judged, mean over items",
        artifact=artifact,
        scope=scope,
        raw=tuple(one.value for one in told),
    )


def at_points(
    measurements: Sequence[Measurement], curve: Curve, points: Sequence[SweepPoint], *names: str
) -> tuple[Measurement, ...]:
    """Those of these names at these points, in their order."""
    scopes = [point_scope(curve, point) for point in points]
    found = {(m.scope, m.name): m for m in measurements}
    return tuple(found[key] for scope in scopes for name in names if (key := (scope, name)) in found)
