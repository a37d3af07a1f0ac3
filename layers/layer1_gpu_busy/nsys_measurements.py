"""Measurements that only nsys exports hold: sampled GPU metrics, waits per second of launching threads."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.measurement import Measurement
from layers.layer1_gpu_busy.nsys_facts import NsysFacts
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis

WAITS_PER_S = "launching_thread_waits_per_s"


def nsys_measurements(trace: TraceAnalysis, device: int, scope: str) -> list[Measurement]:
    """Those of one device; the waits stand with the first device of the file, since they are of all."""
    if trace.nsys is None:
        return []
    first = trace.devices[0].busy.device == device
    return [*_metrics(trace, trace.nsys, device, scope), *(_waits(trace, trace.nsys, scope) if first else ())]


def _metrics(trace: TraceAnalysis, nsys: NsysFacts, device: int, scope: str) -> Iterator[Measurement]:
    for metric, mean in nsys.metrics_of(device).items():
        yield Measurement(
            name=str(metric),
            value=mean.mean,
            unit="share",
            n=mean.n,
            n_unit="samples",
            method=f"nsys GPU metrics ({mean.field}): mean over the device window, weighted by time",
            artifact=trace.artifact,
            scope=scope,
        )


def _waits(trace: TraceAnalysis, nsys: NsysFacts, scope: str) -> Iterator[Measurement]:
    waits = [row for row in nsys.os_calls if row.waits]
    if waits:
        yield Measurement(
            name=WAITS_PER_S,
            value=sum(row.per_s for row in waits),
            unit="1/s",
            n=sum(row.calls for row in waits),
            n_unit="calls",
            method="nsys OSRT: waiting calls of the threads that launch work, over the window of all devices",
            artifact=trace.artifact,
            scope=scope,
        )
