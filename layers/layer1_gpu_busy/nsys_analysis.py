"""One nsys export in, all that Layer 1 finds in it out: the analysis of a trace, and what only nsys tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layers.evidence.intervals import gaps, intersect, total, union
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.busy import busy_time, ops_of
from layers.layer1_gpu_busy.coverage import check_coverage, outermost, tied
from layers.layer1_gpu_busy.host_stack import spans_of
from layers.layer1_gpu_busy.model import RECORDED_WINDOW, Window
from layers.layer1_gpu_busy.nsys_facts import DeviceFacts, NsysFacts, ProcessRow
from layers.layer1_gpu_busy.nsys_metrics import metric_counts, metric_means
from layers.layer1_gpu_busy.nsys_os_calls import launching_threads, os_call_rows
from layers.layer1_gpu_busy.runtime_calls import Purpose, runtime_calls
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_categories import Role
from parsers.nsys_model import CUT_BELOW_SHARE, NsysDevice, NsysExport
from parsers.trace_model import GRAPH, DeviceOps, DeviceTrace


def analyse_export(export: NsysExport, gpu: str = "") -> TraceAnalysis:
    """The analysis of the export's trace, with `nsys` filled in."""
    trace = export.trace
    analysis = analyse_trace(trace, gpu)
    windows = {d.busy.device: d.busy.device_window.window for d in analysis.devices}
    facts = _facts(export, windows)
    coverage = check_coverage(without_pending_launches(trace)) if facts.cut else analysis.coverage
    return replace(analysis, nsys=facts, coverage=coverage)


def _facts(export: NsysExport, windows: Mapping[int, Window]) -> NsysFacts:
    trace, capture = export.trace, export.capture
    recorded = Window(RECORDED_WINDOW, *trace.recorded_ns) if trace.recorded_ns else None
    hull = _hull(windows)
    events_ns = recorded.length_ns if recorded else 0
    brief = capture.duration_ns is not None and events_ns < CUT_BELOW_SHARE * capture.duration_ns
    return NsysFacts(
        capture=capture,
        devices=export.devices,
        processes=process_rows(trace, export.devices),
        device_facts=tuple(device_facts(trace, ops_of(trace, device), windows[device]) for device in windows),
        metric_counts=metric_counts(export.metrics, export.devices),
        metric_rows=export.metric_rows,
        metrics=metric_means(export.metrics, export.devices, windows, recorded, trace.meta.base_time_ns),
        os_calls=os_call_rows(trace, export.os_calls, hull) if hull else (),
        os_window_ns=hull[1] - hull[0] if hull and len(export.os_calls) else None,
        cut=bool(windows) and (brief or capture.time_cut),
        events_ns=events_ns,
    )


def _hull(windows: Mapping[int, Window]) -> tuple[int, int] | None:
    """From the first to the last activity of any device."""
    if not windows:
        return None
    return min(w.start_ns for w in windows.values()), max(w.end_ns for w in windows.values())


def process_rows(trace: DeviceTrace, devices: Sequence[NsysDevice]) -> tuple[ProcessRow, ...]:
    """The processes that launched something or ran something, by pid."""
    calls = runtime_calls(trace)
    launches = calls.spans.select(calls.are(Purpose.LAUNCH, Purpose.GRAPH_LAUNCH))
    launches, _ = outermost(launches, np.ones(len(launches), bool))
    tracks, counts = np.unique(launches.track_id, return_counts=True)
    launched: Counter[int] = Counter()
    names = {int(track.pid): track.process_name for track in trace.tracks}
    for track, n in zip(tracks, counts, strict=True):
        launched[int(trace.tracks[track].pid)] += int(n)
    ran: Counter[int] = Counter()
    for device in devices:
        ran[device.pid] += device.operations
    return tuple(
        ProcessRow(pid, names.get(pid, ""), launched[pid], ran[pid]) for pid in sorted({*launched, *ran})
    )


def device_facts(trace: DeviceTrace, ops: DeviceOps, window: Window) -> DeviceFacts:
    """What is computed for one device (all `ops` are its own, at least one) beside its trace analysis."""
    replayed = ops.kind == GRAPH
    others = total(busy_time(ops.select(~replayed)))
    idle = gaps(busy_time(ops), window.start_ns, window.end_ns)
    overhead = spans_of(trace, Role.OVERHEAD)
    mine = overhead.select(np.isin(overhead.track_id, launching_threads(trace, ops)))
    return DeviceFacts(
        device=int(ops.device[0]),
        replays=int(np.count_nonzero(replayed)),
        ratio_without_replays=others / window.length_ns if window.length_ns else None,
        overhead_idle_ns=total(intersect(idle, union(mine.start_ns, mine.end_ns))),
    )


def without_pending_launches(trace: DeviceTrace) -> DeviceTrace:
    """The trace without the launches that each thread made after its last one with a recorded operation:
    where an export was cut, theirs lie beyond the cut.
    """
    calls = runtime_calls(trace).spans
    ran = calls.select(tied(calls, trace.device_ops))
    last_ns = np.full(len(trace.tracks), np.iinfo(np.int64).max)
    for track in np.unique(ran.track_id):
        last_ns[track] = ran.start_ns[ran.track_id == track].max()
    return replace(trace, host=trace.host.select(trace.host.start_ns <= last_ns[trace.host.track_id]))
