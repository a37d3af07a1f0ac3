"""Layer 1 as JSON: the names of the contract, and everything else that was found beside them.

Anatomy is written as the records of `model.py` are, field by field, in nanoseconds on the trace's clock, null
where a record says None; of a void device neither causes of idle time nor symptoms are. In `devices` what was
not measured is absent. Names out of files are clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from layers.evidence.wording import clipped
from layers.layer1_gpu_busy.document_entries import (
    OF_ANALYSIS,
    DeviceEntry,
    TraceEntry,
    WindowEntry,
    entry_of,
)
from layers.layer1_gpu_busy.findings import ncu_command
from layers.layer1_gpu_busy.model import DeviceAnalysis, WindowRatio
from layers.layer1_gpu_busy.ranks import RankTable
from layers.layer1_gpu_busy.strip import drawn_devices
from layers.layer1_gpu_busy.symptoms.spread import symptom_spread
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device of one trace with its verdict word and the name that it goes by in this result.
    `directional`: its word is a hint."""

    scope: str
    word: str
    trace: TraceAnalysis
    device: DeviceAnalysis
    directional: bool = False


def sections(
    traces: Sequence[TraceAnalysis],
    unread: Sequence[Unread],
    rows: Sequence[DeviceRow],
    thresholds: Thresholds,
    ranks: Sequence[RankTable],
) -> dict[str, Any]:
    """The `devices`, `anatomy`, `ranks` (a table a run of several), `symptom_counts` (of several devices),
    `traces`, `unread` and `thresholds` of the document, and `left_out` where there are many devices.
    """
    standing = [row for row in rows if row.word != Word.VOID]
    spread = symptom_spread([(row.scope, row.device) for row in standing]) if len(standing) > 1 else ()
    drawn = {standing[place].scope for place in drawn_devices([row.device for row in standing])}
    made: dict[str, Any] = {
        **({"ranks": msgspec.to_builtins(ranks)} if ranks else {}),
        **({"symptom_counts": msgspec.to_builtins(spread)} if spread else {}),
        "devices": [_device(row) for row in rows],
        "anatomy": [_anatomy(row, row.scope in drawn) for row in rows if row.device.idle is not None],
        "traces": [_trace(trace) for trace in traces],
        "unread": msgspec.to_builtins(unread),
        "thresholds": {"host_bound": thresholds.host_bound, "device_bound": thresholds.device_bound},
    }
    if len(drawn) < len(standing):
        made["left_out"] = f"strip: kept for the {len(drawn)} least busy of {len(standing):,} devices"
    return {name: clipped(part) for name, part in made.items()}


def _device(row: DeviceRow) -> dict[str, Any]:
    busy = row.device.busy
    window = busy.device_window
    return entry_of(
        DeviceEntry,
        method=row.trace.method,
        source=row.trace.artifact.path,
        scope=row.scope,
        word=row.word,
        directional=row.directional,
        rank=row.trace.meta.rank if row.trace.meta.rank >= 0 else None,
        device=busy.device,
        device_name=busy.device_name or None,
        events=busy.events,
        kernels=busy.kernels,
        window_us=window.window.length_ns / 1000,
        kernel_time_ratio=window.kernel_ratio,
        device_op_ratio=window.device_op_ratio,
        windows=[_window(r) for r in (window, busy.steps_window, busy.recorded_window) if r],
        sum_of_durations_us=busy.sum_ns / 1000,
        streams=busy.streams,
        **_sampled(row),
    )


def _sampled(row: DeviceRow) -> dict[str, Any]:
    """How full the chip was over the device window, by the samples that the same file holds."""
    means = row.trace.nsys.metrics_of(row.device.busy.device) if row.trace.nsys is not None else {}
    return {str(metric): mean.mean for metric, mean in means.items()}


def _window(ratios: WindowRatio) -> dict[str, Any]:
    return entry_of(
        WindowEntry,
        window=ratios.window.name,
        window_us=ratios.window.length_ns / 1000,
        device_op_ratio=ratios.device_op_ratio,
        kernel_time_ratio=ratios.kernel_ratio,
    )


def _anatomy(row: DeviceRow, drawn: bool) -> dict[str, Any]:
    parts = {name: msgspec.to_builtins(getattr(row.device, name)) for name in OF_ANALYSIS}
    if row.word == Word.VOID:
        parts |= {"idle": None, "symptoms": []}
    if not drawn:
        parts["strip"] = None
    return {"scope": row.scope, **parts, "ncu_command": ncu_command(row.device)}


def _trace(trace: TraceAnalysis) -> dict[str, Any]:
    return entry_of(
        TraceEntry,
        path=trace.artifact.path,
        sha256=trace.artifact.sha256,
        size_bytes=trace.artifact.size_bytes,
        text_bytes=trace.text_bytes,
        busy_only=trace.busy_only,
        training=trace.training,
        meta=trace.meta,
        launch_coverage=trace.coverage,
        inventory=trace.inventory,
        losses=trace.losses,
        nsys=trace.nsys,
    )
