"""What devices, the server's processes and the server itself did over the window of a pass. Pure.

Samplers run in processes of their own and stamp on the wall clock; a window is on the monotonic one, and the
load client recorded one pair of both. A metric without one sample in the window was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from layers.collectors.gpu.fields import CPU_SERVICE
from layers.collectors.server_adapters.adapter import ServerState
from layers.layer3_sweep.model import DeviceUse, HostUse, ServerUse
from layers.preflight.watch import foreign_cpu_share
from parsers.series_model import F64, NO_PROCESS, Metric, SampledFile, Series

USE_METRICS = (
    *(Metric.SM_ACTIVE_RATIO, Metric.DEVICE_OP_RATIO, Metric.GR_ACTIVE_RATIO, Metric.TENSOR_ACTIVE_RATIO),
    *(Metric.DRAM_ACTIVE_RATIO, Metric.NVML_UTIL_PCT, Metric.MEMORY_UTIL_PCT, Metric.POWER_W),
)


class StateAt(NamedTuple):
    """What the server said of itself at one moment of the monotonic clock."""

    monotonic_ns: int
    state: ServerState


class WallSpan(NamedTuple):
    """A window on the wall clock (unix ns)."""

    start_ns: int
    end_ns: int


def devices_over(files: Iterable[SampledFile], span: WallSpan) -> tuple[DeviceUse, ...]:
    """Every device and metric with samples in the span; of two fields of one metric the one with more."""
    return tuple(use for file in files for use in _devices(file, span))


def _devices(file: SampledFile, span: WallSpan) -> Iterator[DeviceUse]:
    best: dict[tuple[str, Metric], F64] = {}
    for series in file.series:
        if series.pid != NO_PROCESS:
            continue
        values, key = _inside(series, span), (series.entity, series.metric)
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
            )


def _inside(series: Series, span: WallSpan) -> F64:
    if series.at_ns is None:
        return np.empty(0, np.float64)
    return series.values[(series.at_ns >= span.start_ns) & (series.at_ns < span.end_ns)]


def host_over(files: Iterable[SampledFile], span: WallSpan, processes: int = 0) -> HostUse | None:
    """CPU of the server's processes, by the host sampler; None where it has no sample in the span.

    Threads are not read by it.
    """
    for file in files:
        service = [s for s in file.series if s.field == CPU_SERVICE]
        values = _inside(service[0], span) if service else ()
        if len(values):
            mean = float(np.mean(values))
            return HostUse(mean, None, processes, len(values), _others_share(file, span))
    return None


def _others_share(file: SampledFile, span: WallSpan) -> float | None:
    at_ns, share = foreign_cpu_share(file.series)
    inside = share[(at_ns >= span.start_ns) & (at_ns < span.end_ns)]
    return float(inside.mean()) if len(inside) else None


def server_over(states: Sequence[StateAt], start_ns: int, end_ns: int) -> ServerUse | None:
    """Means of what the server said in a window of the monotonic clock, and what its counters grew by."""
    inside = [at.state for at in states if start_ns <= at.monotonic_ns <= end_ns]
    if not inside:
        return None
    hits, queries = _growth(inside, lambda s: s.prefix_hits), _growth(inside, lambda s: s.prefix_queries)
    return ServerUse(
        running=_mean(s.running for s in inside),
        waiting=_mean(s.waiting for s in inside),
        kv_share=_mean(s.kv_share for s in inside),
        preemptions=_growth(inside, lambda s: s.preemptions),
        prefix_hit_share=hits / queries if hits is not None and queries else None,
        n=len(inside),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return fmean(told) if told else None


def _growth(states: Sequence[ServerState], of: Callable[[ServerState], float | None]) -> float | None:
    """By how much a counter grew; None where it was read less than twice, or fell (the server restarted)."""
    told = [value for state in states if (value := of(state)) is not None]
    return told[-1] - told[0] if len(told) > 1 and told[-1] >= told[0] else None
