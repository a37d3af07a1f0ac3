"""Sampled GPU metrics over the window that a busy ratio is taken over: how full the chip was while it was
busy.

A sample stands for the time up to the next one, so means are weighted by time; a hole in the samples (a
buffer that overflowed) counts for a few periods only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.nsys_facts import MetricCount, MetricMean
from layers.layer1_gpu_busy.reading_coverage import coverage_of
from parsers.nsys_model import NsysDevice
from parsers.series_model import F64, Series
from parsers.trace_model import I64

LONGEST_PERIODS = 3
"""A step of more medians than this is a hole and counts as so many. perfkit's choice, as for other
samplers."""


def metric_means(
    metrics: Sequence[Series],
    devices: Sequence[NsysDevice],
    windows: Mapping[int, Window],
    recorded: Window | None,
    base_time_ns: int,
) -> tuple[MetricMean, ...]:
    """One mean a series that has samples in its window."""
    device_of = gpu_devices(metrics, devices)
    means = []
    for series in metrics:
        device = device_of.get(series.device)
        window = recorded if device is None else windows.get(device)
        found = weighted_mean(series, window, base_time_ns) if window is not None else None
        if window is not None and found is not None:
            mean, n = found
            means.append(
                MetricMean(
                    metric=series.metric,
                    field=series.field,
                    gpu=series.device,
                    device=device,
                    mean=mean,
                    n=n,
                    known=replace(coverage_of(series), hole_share=hole_share(series, window, base_time_ns)),
                )
            )
    return tuple(means)


def metric_counts(metrics: Sequence[Series], devices: Sequence[NsysDevice]) -> tuple[MetricCount, ...]:
    """What every series came to, those without one usable sample too."""
    device_of = gpu_devices(metrics, devices)
    return tuple(
        MetricCount(
            metric=series.metric,
            gpu=series.device,
            device=device_of.get(series.device),
            usable=len(series.values),
            missing=series.missing,
            out_of_range=series.out_of_range,
            mean=float(series.values.mean()) if len(series.values) else None,
        )
        for series in metrics
    )


def gpu_devices(metrics: Sequence[Series], devices: Sequence[NsysDevice]) -> dict[int, int]:
    """Which device each sampled GPU is, as far as the export tells: by its map, or where there is one of both
    and they have one number. With CUDA_VISIBLE_DEVICES the numbers of a process are its own.
    """
    known = {device.gpu: device.device for device in devices if device.gpu is not None}
    if known:
        return known
    gpus, numbers = {series.device for series in metrics}, {device.device for device in devices}
    return dict(zip(gpus, numbers, strict=True)) if gpus == numbers and len(gpus) == 1 else {}


def weighted_mean(series: Series, window: Window, base_time_ns: int) -> tuple[float, int] | None:
    """The mean over a window of the export's clock, and how many samples it rests on; None without any."""
    at_ns, values = _inside(series, window, base_time_ns)
    if not len(values):
        return None
    steps = np.diff(at_ns)
    period = float(np.median(steps)) if len(steps) else 1.0
    weights = np.append(np.minimum(steps, LONGEST_PERIODS * period), period)
    if not weights.any():
        return float(values.mean()), len(values)
    return float(np.average(values, weights=weights)), len(values)


def hole_share(series: Series, window: Window, base_time_ns: int) -> float:
    """The share of a window more than LONGEST_PERIODS after a sample, or after its start where none is yet.

    A few samples have no period worth the name: 0 for fewer than SERIES_MIN_SAMPLES.
    """
    at_ns, _ = _inside(series, window, base_time_ns)
    if len(at_ns) < SERIES_MIN_SAMPLES:
        return 0.0
    steps = np.diff(np.concatenate(([window.start_ns], at_ns, [window.end_ns])))
    period = np.median(steps[steps > 0])
    return float(np.maximum(steps - LONGEST_PERIODS * period, 0).sum() / window.length_ns)


def _inside(series: Series, window: Window, base_time_ns: int) -> tuple[I64, F64]:
    """Times on the export's clock and values of the samples inside a window."""
    at_ns = series.at_ns - base_time_ns if series.at_ns is not None else np.empty(0, np.int64)
    inside = (at_ns >= window.start_ns) & (at_ns < window.end_ns)
    return at_ns[inside], series.values[: len(at_ns)][inside]
