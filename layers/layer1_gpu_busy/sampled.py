"""Statistics of sampled series: one file in, one record per entity out.

Nothing is averaged across metrics, entities or files. Means are of samples, not of time: a sampler that stops
now and then leaves gaps, which are measured and reported instead of being filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from layers.evidence.measurement import Artifact
from layers.layer1_gpu_busy.sampled_model import (
    BUSY_METRICS,
    EntitySamples,
    MetricStats,
    SampledAnalysis,
    Span,
    Stats,
)
from parsers.series_model import F64, NO_PROCESS, Metric, SampledFile, Series
from parsers.trace_model import I64

RAMP_LEVEL = 0.9
"""Of the 90th percentile: where a series has come up. perfkit's choice, far above the noise of a steady
one."""
HOLE_PERIODS = 3
"""A step this many medians long is a hole. perfkit's choice: real 1 s logs vary by a sixth, holes were 7
s."""
MIN_STEPS = 3
"""Fewer steps have no median worth the name."""
NS_PER_S = 1e9
METHODS = (("dcgm", "dcgm"), ("nvidia-smi", "nvidia-smi"))
"""What --json calls the sources that begin so; any other is called by its own name."""


def analyse_samples(file: SampledFile, utc_offset_ns: int = 0) -> SampledAnalysis:
    """Everything that Layer 1 wants to know of one file.

    `utc_offset_ns`: how far the clock of a log without time zone was ahead of UTC.
    """
    shift_ns = utc_offset_ns if file.local_time else 0
    by_entity: dict[tuple[str, int], list[Series]] = {}
    for series in file.series:
        if series.pid == NO_PROCESS:
            by_entity.setdefault((series.entity, series.device), []).append(series)
    return SampledAnalysis(
        artifact=Artifact(file.path, file.sha256, file.size_bytes),
        method=next((method for start, method in METHODS if file.source.startswith(start)), file.source),
        source=file.source,
        entities=tuple(
            analyse_entity(entity, device, all_series, shift_ns)
            for (entity, device), all_series in by_entity.items()
        ),
        processes=_processes(file.series),
        mig_devices=file.mig_devices,
        local_time=file.local_time,
        failures=file.failures,
        losses=file.losses,
        notes=file.notes,
    )


def analyse_entity(
    entity: str, device: int, all_series: Iterable[Series], shift_ns: int = 0
) -> EntitySamples:
    """One GPU or instance: its series, one per metric."""
    series = _one_a_metric(all_series, shift_ns)
    busy = [series[metric] for metric in BUSY_METRICS if metric in series and len(series[metric].values)]
    whole, active = _span(busy, above_zero=False), _span(busy, above_zero=True)
    timed = bool(busy) and all(one.at_ns is not None for one in busy)
    steps_ns = np.diff(positions(busy[0])) if timed else np.empty(0, np.int64)
    steps = _measure_steps(steps_ns)
    return EntitySamples(
        entity=entity,
        device=device,
        series=series,
        timed=timed,
        whole=whole,
        active=active,
        whole_stats=stats_within(series, whole),
        active_stats=stats_within(series, active),
        cadence_s=steps.cadence_s,
        longest_gap_s=steps.longest_gap_s,
        gap_share=steps.gap_share,
        moments=_moments(busy, active) if timed and active else None,
        ramp_share=_ramp_share(busy[0], active) if busy and active else None,
        steps_back=int(np.count_nonzero(steps_ns < 0)),
        false_readings=_false_readings(series),
    )


def positions(series: Series) -> I64:
    """Where each sample lies on the axis of its log."""
    if series.at_ns is not None:
        return series.at_ns
    return series.line if series.line is not None else np.arange(len(series.values), dtype=np.int64)


def stats_within(series: Mapping[Metric, Series], span: Span | None) -> Stats:
    """Each metric that has samples inside the span."""
    if span is None:
        return {}
    found = {metric: _stats(one, span) for metric, one in series.items()}
    return {metric: stats for metric, stats in found.items() if stats is not None}


def _stats(series: Series, span: Span) -> MetricStats | None:
    at = positions(series)
    values = series.values[(at >= span.start) & (at <= span.end)]
    if not len(values):
        return None
    p10, p90 = np.quantile(values, (0.1, 0.9))
    return MetricStats(
        metric=series.metric,
        field=series.field,
        n=len(values),
        missing=series.missing,
        out_of_range=series.out_of_range,
        mean=float(values.mean()),
        p10=float(p10),
        p90=float(p90),
        minimum=float(values.min()),
        maximum=float(values.max()),
        zero_share=float(np.count_nonzero(values == 0) / len(values)),
    )


def _one_a_metric(all_series: Iterable[Series], shift_ns: int) -> dict[Metric, Series]:
    """Of several fields that measure one metric (power.draw, power.draw.instant) the one with most
    samples."""
    chosen: dict[Metric, Series] = {}
    for series in all_series:
        before = chosen.get(series.metric)
        if series.metric is not Metric.OTHER and (before is None or len(series.values) > len(before.values)):
            chosen[series.metric] = series
    return {metric: _shifted(series, shift_ns) for metric, series in chosen.items()}


def _shifted(series: Series, shift_ns: int) -> Series:
    if not shift_ns or series.at_ns is None:
        return series
    return replace(series, at_ns=series.at_ns - shift_ns)


def _span(busy: Iterable[Series], *, above_zero: bool) -> Span | None:
    """From the first to the last sample of any of them (above 0)."""
    found = [
        at for one in busy if len(at := positions(one)[one.values > 0] if above_zero else positions(one))
    ]
    return Span(min(int(at.min()) for at in found), max(int(at.max()) for at in found)) if found else None


class _Steps(NamedTuple):
    cadence_s: float | None = None
    longest_gap_s: float | None = None
    gap_share: float | None = None


def _measure_steps(steps_ns: I64) -> _Steps:
    """Cadence, longest gap and share of the time in holes; None where there are too few steps."""
    forward = steps_ns[steps_ns > 0]
    if len(forward) < MIN_STEPS:
        return _Steps()
    cadence_ns = float(np.median(forward))
    in_holes_ns = forward[forward > HOLE_PERIODS * cadence_ns].sum()
    return _Steps(
        cadence_s=cadence_ns / NS_PER_S,
        longest_gap_s=float(forward.max()) / NS_PER_S,
        gap_share=float(in_holes_ns / forward.sum()),
    )


def _moments(busy: Iterable[Series], active: Span) -> int:
    """Different times in the active stretch, of the series that has most of them."""
    found = (np.unique(positions(one)) for one in busy)
    return max(int(np.count_nonzero((at >= active.start) & (at <= active.end))) for at in found)


def _ramp_share(series: Series, active: Span) -> float:
    """The part of the active samples that came before the series first reached its upper level."""
    at = positions(series)
    values: F64 = series.values[(at >= active.start) & (at <= active.end)]
    if not len(values):
        return 0.0
    return float(np.argmax(values >= RAMP_LEVEL * np.quantile(values, 0.9)) / len(values))


def _false_readings(series: Mapping[Metric, Series]) -> int:
    """Samples with utilisation above 0 and exactly no memory in use: no kernel runs without a context."""
    util, memory = series.get(Metric.NVML_UTIL_PCT), series.get(Metric.MEMORY_USED_BYTES)
    if util is None or memory is None:
        return 0
    empty = positions(memory)[memory.values == 0]
    return int(np.count_nonzero(np.isin(positions(util)[util.values > 0], empty)))


def _processes(all_series: Iterable[Series]) -> dict[int, int]:
    """How many processes each device had that ran kernels, or held memory where the file lists no more."""
    seen = {
        (series.device, series.pid)
        for series in all_series
        if series.pid != NO_PROCESS and np.any(series.values > 0)
    }
    return dict(Counter(device for device, _ in seen))
