"""From the columns of an nsys export to the tables of a chrome trace."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parsers.chrome_categories import Role
from parsers.nsys_activities import PREFIX, RUNTIME_TABLE, WORK_TABLES, Activities, RuntimeCalls
from parsers.nsys_file import NULL, NsysFile
from parsers.nsys_host import NVTX_TABLE, OS_TABLE, OVERHEAD_TABLES, Spans
from parsers.nsys_identity import ID_MASK, process_of
from parsers.trace_model import I64, NO_CORRELATION, PROCESS_SHIFT, CategoryCount, DeviceOps, HostSpans

RUNTIME, DRIVER, ANNOTATION, OPERATOR, OVERHEAD, OS_CALL = range(6)
CATEGORIES = ["cuda_runtime", "cuda_driver", "user_annotation", "cpu_op", "overhead", "os_call"]
"""Those of torch.profiler, so that Layer 1 knows what each is; `os_call` is nsys's alone."""

NOT_DEVICE_TIME = ("RUNTIME", "DRIVER", "SYNCHRONIZATION", "CUDA_EVENT", "OVERHEAD")
"""CUPTI tables that hold no work of the device."""
READ_ON_HOST: dict[str, str] = {
    RUNTIME_TABLE: Role.RUNTIME,
    NVTX_TABLE: Role.ANNOTATION,
    OS_TABLE: "system call",
    **dict.fromkeys(OVERHEAD_TABLES, Role.OVERHEAD),
}


@dataclass(frozen=True, slots=True)
class HostColumns:
    """What threads did, as read. `os_calls` are kept apart from the host spans of the trace."""

    calls: RuntimeCalls
    ranges: Spans
    ranges_are_operators: np.ndarray[tuple[int], np.dtype[np.bool_]]
    overhead: Spans
    os_calls: Spans

    @property
    def threads(self) -> I64:
        """The global ids of all threads, ascending."""
        spans = (self.calls, self.ranges, self.overhead, self.os_calls)
        return np.unique(np.concatenate([s.thread for s in spans]))

    def of_one_process(self) -> HostColumns:
        """The same with threads told by their own id alone, for exports that name no processes."""
        return HostColumns(
            calls=replace(self.calls, thread=self.calls.thread & ID_MASK),
            ranges=replace(self.ranges, thread=self.ranges.thread & ID_MASK),
            ranges_are_operators=self.ranges_are_operators,
            overhead=replace(self.overhead, thread=self.overhead.thread & ID_MASK),
            os_calls=replace(self.os_calls, thread=self.os_calls.thread & ID_MASK),
        )


def extent(work: Activities, host: HostColumns) -> tuple[int, int] | None:
    """From the first to the last moment of anything that was read; None where nothing was."""
    parts = (work, host.calls, host.ranges, host.overhead, host.os_calls)
    timed = [part for part in parts if len(part.start_ns)]
    if not timed:
        return None
    first_ns = min(int(part.start_ns.min()) for part in timed)
    return first_ns, max(int(max(part.start_ns.max(), part.end_ns.max())) for part in timed)


def device_ops(work: Activities, device: I64, processes: I64) -> tuple[DeviceOps, dict[int, int]]:
    """The operations by start, and how many of each device have no time; `device` is that of each row."""
    untimed = work.no_time != 0
    rows = by_start(work.start_ns, work.end_ns)
    rows = rows[~untimed[rows]]
    ops = DeviceOps(
        start_ns=work.start_ns[rows],
        end_ns=work.end_ns[rows],
        kind=work.kind[rows].astype(np.int8),
        name_id=work.name_id[rows].astype(np.int32),
        device=device[rows].astype(np.int32),
        stream=work.stream[rows],
        correlation=unique_correlation(work.correlation, work.process, processes)[rows],
        graph_id=work.graph_id[rows],
        nbytes=work.nbytes[rows],
    )
    numbers, counts = np.unique(device[untimed], return_counts=True)
    return ops, dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def by_start(start_ns: I64, end_ns: I64) -> I64:
    """The order of the tables of a trace: by start, of equal starts the longest first."""
    return np.lexsort((-end_ns, start_ns))


def unique_correlation(correlation: I64, process: I64, processes: I64) -> I64:
    """Correlation ids that no two processes share; ids count from 1 in 32 bits, so 0 is none."""
    number = np.searchsorted(processes, process)
    known = (correlation > 0) & (correlation < 1 << PROCESS_SHIFT)
    return np.where(known, (number << PROCESS_SHIFT) + correlation, NO_CORRELATION)


def host_spans(host: HostColumns, processes: I64, threads: I64, end_ns: int) -> HostSpans:
    """Calls, ranges and overhead by start; ranges that never ended do so at `end_ns`."""
    calls, ranges = host.calls, host.ranges
    correlation = unique_correlation(calls.correlation, process_of(calls.thread), processes)
    parts = (calls, ranges, host.overhead)
    thread = np.concatenate([part.thread for part in parts])
    start_ns = np.concatenate([part.start_ns for part in parts])
    end = np.concatenate([part.end_ns for part in parts])
    kinds = (
        np.where(calls.of_driver != 0, DRIVER, RUNTIME),
        np.where(host.ranges_are_operators, OPERATOR, ANNOTATION),
        np.full(len(host.overhead.start_ns), OVERHEAD),
    )
    others = len(start_ns) - len(correlation)
    spans = HostSpans(
        start_ns=start_ns,
        end_ns=np.maximum(np.where(end == NULL, end_ns, end), start_ns),
        category_id=np.concatenate(kinds).astype(np.int16),
        name_id=np.concatenate([part.name_id for part in parts]).astype(np.int32),
        track_id=np.searchsorted(threads, thread).astype(np.int32),
        correlation=np.concatenate([correlation, np.full(others, NO_CORRELATION, np.int64)]),
    )
    return spans.select(by_start(spans.start_ns, spans.end_ns))


def os_spans(calls: Spans, threads: I64) -> HostSpans:
    """System calls by start."""
    spans = HostSpans(
        start_ns=calls.start_ns,
        end_ns=calls.end_ns,
        category_id=np.full(len(calls.start_ns), OS_CALL, np.int16),
        name_id=calls.name_id.astype(np.int32),
        track_id=np.searchsorted(threads, calls.thread).astype(np.int32),
        correlation=np.full(len(calls.start_ns), NO_CORRELATION, np.int64),
    )
    return spans.select(by_start(spans.start_ns, spans.end_ns))


def inventory(file: NsysFile) -> list[CategoryCount]:
    """The tables of events with their rows, those of device work first, and what perfkit takes each for.

    A table of CUPTI that perfkit does not know and whose rows name a device and a time may hold work.
    """
    rows = [_row(file, PREFIX + suffix, Role.DEVICE) for suffix in WORK_TABLES]
    rows += [_row(file, table, role) for table, role in READ_ON_HOST.items()]
    known = {file.find(PREFIX + suffix) for suffix in (*WORK_TABLES, *NOT_DEVICE_TIME)}
    rows += [
        CategoryCount(table, "row", file.count_itself(table), str(Role.UNKNOWN_DEVICE))
        for table, columns in sorted(file.tables.items())
        if table.startswith(PREFIX)
        and table not in known
        and columns.issuperset(("start", "end", "deviceId"))
    ]
    return [row for row in rows if row.events]


def _row(file: NsysFile, table: str, role: str) -> CategoryCount:
    return CategoryCount(table, "row", file.count(table), str(role))
