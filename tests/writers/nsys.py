"""A small writer of nsys sqlite exports, in the schemas of several generations of nsys.

Times are integer nanoseconds from the start of the recording. Collect rows with the methods of
`NsysBuilder`, in any order, then `write` them. As nsys does, a table without rows is left out, strings go
to StringIds, and global ids are made of a machine, a process and a thread. `row` and `without` take
whatever damage you want.

    export = NsysBuilder(Generation.V3_25)
    export.launch("gemm", call_ns=1_000, start_ns=20_000, dur_ns=50_000)
    export.graph_launch(70_000, start_ns=75_000, dur_ns=9_000, graph=4)
    export.range("step[DECODE bs=8]", 0, 90_000)
    export.write(tmp_path / "t.sqlite")
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

PID = 4242
MACHINE = 1 << 48
STARTED_NS = 1_785_620_044_423_518_993
PREFIX = "CUPTI_ACTIVITY_KIND_"
CALL_DUR_NS = 5_000

HTOD, DTOH, UVM_HTOD = 1, 2, 11
PAGEABLE, PINNED, DEVICE_MEMORY = 0, 1, 2
PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75
RUNTIME, DRIVER = 0, 1

Row = dict[str, Any]


class Generation(Enum):
    """Schemas that differ in what a reader meets: (version, name of the export's own table)."""

    BEFORE_2021 = ("", "")
    V2_9 = ("2.9.1", "EXPORT_META_DATA")
    V3_4 = ("3.4.0", "META_DATA_EXPORT")
    V3_17 = ("3.17.2", "META_DATA_EXPORT")
    V3_25 = ("3.25.0", "META_DATA_EXPORT")

    @property
    def schema(self) -> str:
        return self.value[0]

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(map(int, self.schema.split("."))) if self.schema else (0,)


COMMON = "start end deviceId contextId streamId correlationId globalPid"
COLUMNS: dict[str, str] = {
    "KERNEL": f"{COMMON} demangledName shortName gridId graphNodeId",
    "MEMCPY": f"{COMMON} bytes copyKind srcKind dstKind graphNodeId",
    "MEMSET": f"{COMMON} value bytes graphNodeId memKind",
    "GRAPH_TRACE": f"{COMMON} graphId graphExecId",
    "RUNTIME": "start end eventClass globalTid correlationId nameId returnValue",
    "OVERHEAD": "start end eventClass globalTid correlationId nameId overheadType",
    "NVTX_EVENTS": "start end eventType rangeId text globalTid textId domainId",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel",
    "PROFILER_OVERHEAD": "start end globalTid nameId",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text globalPid",
    "META_DATA_CAPTURE": "name value",
    "PROCESSES": "globalPid pid name",
    "ThreadNames": "nameId priority globalTid",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
    "ProcessStreams": "globalPid filenameId contentId",
    "GPU_METRICS": "timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName metricId metricName",
    "GENERIC_EVENTS": "rawTimestamp timestamp typeId data",
    "GENERIC_EVENT_SOURCES": "sourceId data",
    "GENERIC_EVENT_TYPES": "typeId sourceId data",
}


def global_id(pid: int, tid: int = 0) -> int:
    """The id of a thread, or with tid 0 of a process."""
    return MACHINE | pid << 24 | tid


class NsysBuilder:
    """Collects rows; every method appends and returns at once."""

    def __init__(self, generation: Generation = Generation.V3_25, *, mapped: bool | None = None) -> None:
        """`mapped`: list each process's devices as physical GPUs (None: as the generation does)."""
        self.generation = generation
        self.mapped = generation.number >= (3, 17) if mapped is None else mapped
        self.tables: dict[str, list[Row]] = {}
        self.dropped: dict[str, set[str]] = {}
        self._strings: dict[str, int] = {}
        self._correlation = 1_000
        self._gpu_key = "id" if generation.number >= (2, 9) else "deviceId"
        if generation.schema:
            self.row(generation.value[1], name="EXPORT_SCHEMA_VERSION", value=generation.schema)
            self.row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=STARTED_NS, utcTime="", localTime="")

    def row(self, table: str, **values: Any) -> None:
        """Any row of any table; columns that the table does not list are added to it."""
        self.tables.setdefault(table, []).append(values)

    def without(self, table: str, *columns: str) -> None:
        """Leave out columns of a table."""
        self.dropped.setdefault(table, set()).update(columns)

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def kernel(
        self,
        name: str,
        start_ns: int,
        dur_ns: int,
        *,
        correlation: int = 0,
        pid: int = PID,
        device: int = 0,
        stream: int = 7,
        graph_node: int | None = None,
        graph: int | None = None,
    ) -> None:
        node = {"graphNodeId": graph_node} | ({"graphId": graph} if graph is not None else {})
        names = {"demangledName": self.string(name), "shortName": self.string(name.split("<")[0])}
        self._work("KERNEL", start_ns, dur_ns, correlation, pid, device, stream, **names, **node)

    def memcpy(
        self,
        start_ns: int,
        dur_ns: int,
        *,
        kind: int = HTOD,
        source: int = PAGEABLE,
        target: int = DEVICE_MEMORY,
        nbytes: int = 4,
        correlation: int = 0,
        pid: int = PID,
        device: int = 0,
        stream: int = 7,
    ) -> None:
        values = {"bytes": nbytes, "copyKind": kind, "srcKind": source, "dstKind": target}
        self._work("MEMCPY", start_ns, dur_ns, correlation, pid, device, stream, **values)

    def memset(self, start_ns: int, dur_ns: int, *, nbytes: int = 4, pid: int = PID, device: int = 0) -> None:
        self._work(
            "MEMSET", start_ns, dur_ns, 0, pid, device, 7, value=0, bytes=nbytes, memKind=DEVICE_MEMORY
        )

    def replay(
        self, start_ns: int, dur_ns: int, *, correlation: int, graph: int, pid: int = PID, device: int = 0
    ) -> None:
        """A replay of a graph as one interval."""
        self._work("GRAPH_TRACE", start_ns, dur_ns, correlation, pid, device, 7, graphId=graph, graphExecId=9)

    def _work(
        self,
        table: str,
        start_ns: int,
        dur_ns: int,
        correlation: int,
        pid: int,
        device: int,
        stream: int,
        **values: Any,
    ) -> None:
        self.row(
            PREFIX + table,
            start=start_ns,
            end=start_ns + dur_ns,
            deviceId=device,
            contextId=1,
            streamId=stream,
            correlationId=correlation,
            globalPid=global_id(pid),
            **values,
        )

    def call(
        self,
        name: str,
        start_ns: int,
        dur_ns: int = CALL_DUR_NS,
        *,
        correlation: int | None = None,
        pid: int = PID,
        tid: int | None = None,
        event_class: int = RUNTIME,
    ) -> int:
        """A call into CUDA; returns its correlation id."""
        correlation = self.next_correlation() if correlation is None else correlation
        self.row(
            PREFIX + "RUNTIME",
            start=start_ns,
            end=start_ns + dur_ns,
            eventClass=event_class,
            globalTid=global_id(pid, tid or pid),
            correlationId=correlation,
            nameId=self.string(name),
            returnValue=0,
        )
        return correlation

    def launch(
        self, name: str, *, call_ns: int, start_ns: int, dur_ns: int, pid: int = PID, **kernel: Any
    ) -> None:
        """A kernel and the call that launched it."""
        correlation = self.call("cudaLaunchKernel_v7000", call_ns, pid=pid)
        self.kernel(name, start_ns, dur_ns, correlation=correlation, pid=pid, **kernel)

    def graph_launch(
        self, call_ns: int, *, start_ns: int | None = None, dur_ns: int = 0, graph: int = 1, pid: int = PID
    ) -> int:
        """A graph launch and its replay as one interval (none where `start_ns` is None)."""
        correlation = self.call("cudaGraphLaunch_v10000", call_ns, pid=pid)
        if start_ns is not None:
            self.replay(start_ns, dur_ns, correlation=correlation, graph=graph, pid=pid)
        return correlation

    def range(
        self,
        text: str,
        start_ns: int,
        end_ns: int | None,
        *,
        kind: int = PUSH_POP,
        pid: int = PID,
        registered: bool = False,
    ) -> None:
        """An NVTX range or mark; `registered`: its text stands in StringIds."""
        named = {"textId": self.string(text)} if registered else {"text": text}
        tid = global_id(pid, pid)
        self.row(
            "NVTX_EVENTS", start=start_ns, end=end_ns, eventType=kind, globalTid=tid, domainId=0, **named
        )

    def os_call(
        self, name: str, start_ns: int, dur_ns: int, *, pid: int = PID, tid: int | None = None
    ) -> None:
        self.row(
            "OSRT_API",
            start=start_ns,
            end=start_ns + dur_ns,
            eventClass=27,
            globalTid=global_id(pid, tid or pid),
            nameId=self.string(name),
            nestingLevel=0,
        )

    def overhead(self, name: str, start_ns: int, dur_ns: int, *, pid: int = PID) -> None:
        tid, text = global_id(pid, pid), self.string(name)
        self.row("PROFILER_OVERHEAD", start=start_ns, end=start_ns + dur_ns, globalTid=tid, nameId=text)

    def message(self, text: str, *, pid: int = PID) -> None:
        """A message of nsys about a process; 0 stands for the whole recording."""
        values = {"timestamp": 0, "timestampType": 1, "source": 3, "severity": 2}
        self.row("DIAGNOSTIC_EVENT", text=text, globalPid=global_id(pid), **values)

    def option(self, name: str, value: str) -> None:
        """A capture option."""
        self.row("META_DATA_CAPTURE", name=name, value=value)

    def export_option(self, name: str, value: str) -> None:
        self.row(self.generation.value[1], name=name, value=value)

    def duration(self, ns: int) -> None:
        """The stated length of the recording. Its start and stop are on another clock, as in real files."""
        self.row("ANALYSIS_DETAILS", globalVid=MACHINE, duration=ns, startTime=10**13, stopTime=10**13 + ns)

    def gpu(self, number: int, name: str) -> None:
        self.row(
            "TARGET_INFO_GPU", vmId=MACHINE, **{self._gpu_key: number}, name=name, busLocation="0000:01:00.0"
        )

    def cuda_device(self, pid: int, ordinal: int, gpu: int) -> None:
        """Which GPU a process's device is."""
        self.row("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=ordinal, pid=pid)

    def metric(self, gpu: int, number: int, name: str, samples: Iterable[tuple[int, float | None]]) -> None:
        """A sampled metric in the form of GPU_METRICS: (time, percent), stamped with `timestamp`."""
        self._name_metric(gpu, number, name)
        for at_ns, value in samples:
            self.row("GPU_METRICS", timestamp=at_ns, typeId=MACHINE | gpu, metricId=number, value=value)

    def raw_metric(self, gpu: int, number: int, name: str, samples: Iterable[tuple[int, float]]) -> None:
        """The same, stamped with `rawTimestamp`."""
        self._name_metric(gpu, number, name)
        self.without("GPU_METRICS", "timestamp")
        for at_ns, value in samples:
            self.row("GPU_METRICS", rawTimestamp=at_ns, typeId=MACHINE | gpu, metricId=number, value=value)

    def json_metrics(self, gpu: int, samples: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Samples in the form of the time up to 2023.3: one JSON object a sample."""
        self.generic_source(1, "GpuMetrics", MACHINE | gpu)
        for at_ns, data in samples:
            values = {"rawTimestamp": at_ns, "timestamp": at_ns, "data": json.dumps(data)}
            self.row("GENERIC_EVENTS", typeId=MACHINE | gpu, **values)

    def generic_source(self, number: int, name: str, type_id: int) -> None:
        self.row("GENERIC_EVENT_SOURCES", sourceId=number, data=json.dumps({"Name": name}))
        self.row("GENERIC_EVENT_TYPES", typeId=type_id, sourceId=number, data="{}")

    def _name_metric(self, gpu: int, number: int, name: str) -> None:
        names = {"typeName": "GpuMetrics", "metricId": number, "metricName": name}
        self.row("TARGET_INFO_GPU_METRICS", typeId=MACHINE | gpu, sourceId=1, **names)

    def write(self, path: Path) -> Path:
        """Write the file, in the place of any that is there, and return its path."""
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
        with connection:
            connection.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
            connection.executemany(
                "INSERT INTO StringIds VALUES (?, ?)", ((i, s) for s, i in self._strings.items())
            )
            for table, rows in self.tables.items():
                if table != "TARGET_INFO_CUDA_DEVICE" or self.mapped:
                    self._write_table(connection, table, rows)
        connection.close()
        return path

    def _write_table(self, connection: sqlite3.Connection, table: str, rows: list[Row]) -> None:
        listed = COLUMNS.get(table.removeprefix(PREFIX), "").split()
        columns = list(dict.fromkeys([*listed, *(column for row in rows for column in row)]))
        columns = [column for column in columns if column not in self.dropped.get(table, ())]
        # In the first versions CUPTI's columns hold 0 where there is no value.
        zeros = self.generation is Generation.BEFORE_2021 and table.startswith(PREFIX)
        empty = 0 if zeros else None
        named = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f'CREATE TABLE "{table}" ({named})')
        values = ([row.get(column, empty) for column in columns] for row in rows)
        connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', values)
