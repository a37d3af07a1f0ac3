"""Read an nsys sqlite export into the tables of a chrome trace, so that all of Layer 1 works on it.

Schemas from none at all (2020) to 3.25 (2026) are read; a version is what tables and columns it has, and the
stated number is kept to be judged. An absent table is not zero: `NsysCapture` holds what the export says
about what was traced. Calls find their operations by process and correlation id. The environment and the
output of the target, which every export holds, are never read.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from parsers.chrome_categories import Producer
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.nsys_activities import PREFIX, WORK_TABLES, Activities, read_activities, read_runtime_calls
from parsers.nsys_capture import Clock, read_capture, read_clock, read_duration_ns
from parsers.nsys_file import EXPORT_COMMAND, NULL, NsysFile, open_export
from parsers.nsys_gpu_metrics import count_gpu_metrics, read_gpu_metrics
from parsers.nsys_host import NO_SPANS, Spans, read_os_calls, read_overhead, read_ranges
from parsers.nsys_identity import find_devices, name_devices, process_of, read_tracks
from parsers.nsys_model import CUT_BELOW_SHARE, GRAPH_MODE, NODE_MODE, NsysCapture, NsysExport
from parsers.nsys_names import Names
from parsers.nsys_tables import (
    CATEGORIES,
    HostColumns,
    device_ops,
    extent,
    host_spans,
    inventory,
    os_spans,
)
from parsers.nsys_times import TimeLimits, held, limits_of
from parsers.regular_file import open_regular
from parsers.trace_model import GRAPH, DeviceTrace, TraceMeta

KNOWN_TABLES = ("StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "ANALYSIS_DETAILS", "TARGET_INFO_GPU")
"""An nsys export has one of these, however little it recorded."""


def read_nsys_export(path: str, *, busy_only: bool = False) -> NsysExport:
    """Read one export. `busy_only` reads device work, graph launches and step marks alone.

    Raises UnreadableInput for what is no export of nsys, is locked, or lacks a column that nothing can
    replace.
    """
    with open_export(path) as file:
        if not any(file.find(table) for table in KNOWN_TABLES):
            raise UnreadableInput(
                f"{path}: a SQLite database, but no export of nsys (it has none of the tables "
                f"{', '.join(KNOWN_TABLES)}): make one with {EXPORT_COMMAND}"
            )
        return _read(path, file, busy_only)


def _read(path: str, file: NsysFile, busy_only: bool) -> NsysExport:
    names, clock = Names(file), read_clock(file)
    work, limits = _read_work(file, names, clock)
    host = _read_host(file, names, busy_only, limits)
    if any(file.find(PREFIX + table) and not file.has(PREFIX + table, "globalPid") for table in WORK_TABLES):
        work, host = replace(work, process=np.zeros_like(work.process)), host.of_one_process()
    threads = host.threads
    processes = np.unique(np.concatenate((work.process, process_of(host.calls.thread))))
    capture = _completed(read_capture(file, processes.tolist()), work, host)
    tracks = read_tracks(file, threads.tolist(), names)
    devices, device = find_devices(file, work.process, work.ordinal)
    ops, zero_timestamps = device_ops(work, device, processes)
    recorded = _recorded(capture, clock, extent(work, host))
    end_ns = recorded[1] if recorded else clock.zero_ns
    metrics = () if busy_only else read_gpu_metrics(file, clock.base_time_ns)
    metric_rows = 0 if busy_only else count_gpu_metrics(file)
    sha256, size_bytes = _digest(path)
    trace = DeviceTrace(
        path=path,
        sha256=sha256,
        size_bytes=size_bytes,
        text_bytes=0,
        busy_only=busy_only,
        meta=_meta(capture, clock, name_devices(file, devices)),
        names=names.all,
        categories=CATEGORIES,
        tracks=tracks,
        inventory=inventory(file),
        device_ops=ops,
        host=host_spans(host, processes, threads, end_ns),
        gemms=[],
        collectives=[],
        recorded_ns=recorded,
        zero_timestamps=zero_timestamps,
        device_processes={},
        losses=[*file.losses, *_overflow(names)],
    )
    return NsysExport(trace, capture, devices, os_spans(host.os_calls, threads), metrics, metric_rows)


def _read_work(file: NsysFile, names: Names, clock: Clock) -> tuple[Activities, TimeLimits]:
    """Device work, without what lies outside the recording, and the limits of that."""
    work = read_activities(file, names)
    limits = limits_of(clock.zero_ns, read_duration_ns(file), work.start_ns, work.end_ns)
    what = "device operations"
    return work.select(
        held(file, what, limits, work.start_ns, work.end_ns, may_hide_device_work=True)
    ), limits


def _read_host(file: NsysFile, names: Names, busy_only: bool, limits: TimeLimits) -> HostColumns:
    calls = read_runtime_calls(file, names, busy_only)
    calls = calls.select(
        held(file, "CUDA calls", limits, calls.start_ns, calls.end_ns, may_hide_device_work=False)
    )
    ranges, are_operators = read_ranges(file, names, busy_only)
    ends_ns = np.where(ranges.end_ns == NULL, ranges.start_ns, ranges.end_ns)
    inside = held(file, "NVTX ranges", limits, ranges.start_ns, ends_ns, may_hide_device_work=False)
    overhead = NO_SPANS if busy_only else read_overhead(file, names)
    os_calls = NO_SPANS if busy_only else read_os_calls(file, names, np.unique(calls.thread))
    return HostColumns(
        calls,
        ranges.select(inside),
        are_operators[inside],
        _held_spans(file, "stretches of work for the profiler", limits, overhead),
        _held_spans(file, "system calls", limits, os_calls),
    )


def _held_spans(file: NsysFile, what: str, limits: TimeLimits, spans: Spans) -> Spans:
    keep = held(file, what, limits, spans.start_ns, spans.end_ns, may_hide_device_work=False)
    return spans.select(keep)


def _completed(capture: NsysCapture, work: Activities, host: HostColumns) -> NsysCapture:
    """What the options do not say, as the rows show it."""
    mode = capture.cuda_graphs
    if not mode and work.graph_id.any():
        mode = GRAPH_MODE if (work.kind == GRAPH).any() else NODE_MODE
    traced = True if len(work.start_ns) or len(host.calls.start_ns) else capture.cuda_traced
    return replace(capture, cuda_graphs=mode, cuda_traced=traced)


def _recorded(
    capture: NsysCapture, clock: Clock, events_ns: tuple[int, int] | None
) -> tuple[int, int] | None:
    """The recording as the export states it, unless its events fill so little of it that it was cut."""
    if capture.duration_ns is None or events_ns is None:
        return events_ns
    if events_ns[1] - events_ns[0] < CUT_BELOW_SHARE * capture.duration_ns:
        return events_ns
    return min(clock.zero_ns, events_ns[0]), max(clock.zero_ns + capture.duration_ns, events_ns[1])


def _meta(capture: NsysCapture, clock: Clock, device_names: dict[int, str]) -> TraceMeta:
    versions = {"nsys": capture.product, "nsys schema": capture.schema}
    return TraceMeta(
        rank=-1,
        world_size=-1,
        base_time_ns=clock.base_time_ns,
        device_names=device_names,
        versions={name: version for name, version in versions.items() if version},
        producer=str(Producer.NSYS),
        nanosecond_resolution=True,
    )


def _overflow(names: Names) -> list[Loss]:
    what = "too many different names to keep apart: the rest share one"
    return [Loss(what, -1, 0, 0, may_hide_device_work=False)] if names.overflowed else []


def _digest(path: str) -> tuple[str, int]:
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()
