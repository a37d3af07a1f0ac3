"""What the devices did over the window of a pass, and the CPUs of the host. Pure.

Samplers run in processes of their own and stamp on the wall clock; a window is on the monotonic one, and the
load client recorded one pair of both. A metric without one sample in the window was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from layers.collectors.gpu.fields import CPU_SERVICE, PROCESS_LISTED, PROCESS_OURS
from layers.layer3_sweep.model import DeviceUse, HostUse
from layers.preflight.watch import foreign_cpu_share
from parsers.series_model import F64, NO_PROCESS, Metric, SampledFile, Series

USE_METRICS = (
    *(Metric.SM_ACTIVE_RATIO, Metric.DEVICE_OP_RATIO, Metric.GR_ACTIVE_RATIO, Metric.TENSOR_ACTIVE_RATIO),
    *(Metric.DRAM_ACTIVE_RATIO, Metric.NVML_UTIL_PCT, Metric.MEMORY_UTIL_PCT, Metric.POWER_W),
)


class WallSpan(NamedTuple):
    """A window on the wall clock (unix ns)."""

    start_ns: int
    end_ns: int


def devices_over(files: Sequence[SampledFile], span: WallSpan) -> tuple[DeviceUse, ...]:
    """Every device and metric with samples in the span; of two samplings of one metric the one with more.

    Where a watch says which cards the server's processes are on, the others are left out.
    """
    ours = _our_devices([series for file in files for series in file.series])
    best: dict[tuple[str, str], DeviceUse] = {}
    for use in (use for file in files for use in _devices(file, span, ours)):
        known = best.get((use.device, use.metric))
        if known is None or use.n > known.n:
            best[use.device, use.metric] = use
    return tuple(best.values())


def _our_devices(series: Sequence[Series]) -> set[int]:
    """The cards that processes of ours are on; empty where that was not watched, or ids do not compare."""
    family = {one.pid for one in series if one.field == PROCESS_OURS}
    return {one.device for one in series if one.field == PROCESS_LISTED and one.pid in family}


def _devices(file: SampledFile, span: WallSpan, ours: set[int]) -> Iterator[DeviceUse]:
    best: dict[tuple[str, Metric], F64] = {}
    for series in file.series:
        if series.pid != NO_PROCESS or (ours and series.device not in ours):
            continue
        values, key = inside(series, span), (series.entity, series.metric)
        if len(values) > len(best.get(key, ())):
            best[key] = values
    for (entity, metric), values in best.items():
        if metric in USE_METRICS:
            memory = best.get((entity, Metric.MEMORY_USED_BYTES))
            yield DeviceUse(
                device=entity,
                source=file.source,
                metric=str(metric),
                mean=float(values.mean()),
                n=len(values),
                memory_peak_bytes=float(memory.max()) if memory is not None else None,
                median=float(np.median(values)),
            )


def inside(series: Series, span: WallSpan) -> F64:
    """The samples in a span; none of a source that stamps nothing."""
    if series.at_ns is None:
        return np.empty(0, np.float64)
    return series.values[(series.at_ns >= span.start_ns) & (series.at_ns < span.end_ns)]


def host_over(files: Iterable[SampledFile], span: WallSpan, processes: int = 0) -> HostUse | None:
    """CPU of the server's processes, by the host sampler; None where it has no sample in the span.

    Threads are not read by it.
    """
    for file in files:
        service = [s for s in file.series if s.field == CPU_SERVICE]
        values = inside(service[0], span) if service else ()
        if len(values):
            mean = float(np.mean(values))
            return HostUse(mean, None, processes, len(values), _others_share(file, span))
    return None


def _others_share(file: SampledFile, span: WallSpan) -> float | None:
    at_ns, share = foreign_cpu_share(file.series)
    inside = share[(at_ns >= span.start_ns) & (at_ns < span.end_ns)]
    return float(inside.mean()) if len(inside) else None
