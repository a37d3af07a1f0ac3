"""Device work and runtime calls of an nsys export.

Four tables hold device work: kernels, copies, sets, and replays of CUDA graphs as a whole (only when nsys
traced graphs that way; the replayed kernels are then in no table). Runtime and driver calls share one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parsers.chrome_categories import for_busy_ratio
from parsers.loss import Loss
from parsers.nsys_distinct import distinct_rows
from parsers.nsys_file import REQUIRED, Columns, NsysFile, quoted
from parsers.nsys_identity import MAX_DEVICE
from parsers.nsys_names import NO_STRING, Names
from parsers.trace_model import GRAPH, I64, KERNEL, MEMCPY, MEMSET, NO_STREAM, UNKNOWN_BYTES, Bools

PREFIX = "CUPTI_ACTIVITY_KIND_"
RUNTIME_TABLE = PREFIX + "RUNTIME"
DRIVER_EVENT = 1
"""`eventClass` of a driver call; 0 is a runtime call."""

VERSION_SUFFIX = re.compile(r"_v\d+$")
"""Runtime calls are named with the CUDA version that introduced them: `cudaLaunchKernel_v7000`."""

COPY_KINDS = (
    *("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"),
    *("HtoD", "DtoH", "DtoD"),
)
MIGRATIONS_FROM = 11
"""Copies of this kind and above are migrations of Unified Memory."""
MEMORY_KINDS = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed", "Unknown")
UNKNOWN_MEMORY = 7
"""CUPTI's enums, the same in every version that exports them."""

UNNAMED_GRAPH = 1
"""For nodes of graphs in exports that number nodes and not graphs (before 2025.5)."""


@dataclass(frozen=True, slots=True)
class Activities:
    """Device operations in the order of the tables; all arrays have shape (n,). `start_ns <= end_ns` holds,
    and `no_time` marks rows with start and end 0: they ran, and when is unknown.
    """

    start_ns: I64
    end_ns: I64
    kind: I64
    name_id: I64
    stream: I64
    correlation: I64
    graph_id: I64
    nbytes: I64
    process: I64
    ordinal: I64
    no_time: I64

    def select(self, keep: Bools) -> Activities:
        """The rows that a mask picks."""
        return Activities(*(getattr(self, name)[keep] for name in Activities.__slots__))


COMMON: dict[str, int | None] = {
    "start": REQUIRED,
    "end": REQUIRED,
    "deviceId": REQUIRED,
    "streamId": NO_STREAM,
    "correlationId": 0,
    "globalPid": 0,
    "graphId": 0,
    "graphNodeId": 0,
}


def read_activities(file: NsysFile, names: Names) -> Activities:
    """All device work; rows that end before they start, or name no device that there can be, are dropped, and
    counted as lost."""
    parts = []
    for suffix, kind, extra, name in _TABLES:
        columns = file.columns(PREFIX + suffix, COMMON | extra, may_hide_device_work=True)
        if len(columns["start"]):
            parts.append(_activities(file, PREFIX + suffix, columns, kind, name(names, columns)))
    return _joined(parts)


def _activities(file: NsysFile, table: str, columns: Columns, kind: int, name_id: I64) -> Activities:
    whole = _possible(file, table, columns)
    if not whole.all():
        columns = {column: values[whole] for column, values in columns.items()}
        name_id = name_id[whole]
    rows = len(columns["start"])
    return Activities(
        start_ns=columns["start"],
        end_ns=columns["end"],
        kind=np.full(rows, kind, np.int64),
        name_id=name_id,
        stream=columns["streamId"],
        correlation=columns["correlationId"],
        graph_id=_graph_id(columns),
        nbytes=columns.get("bytes", np.full(rows, UNKNOWN_BYTES, np.int64)),
        process=columns["globalPid"],
        ordinal=columns["deviceId"],
        no_time=((columns["start"] == 0) & (columns["end"] == 0)).astype(np.int64),
    )


def _possible(file: NsysFile, table: str, columns: Columns) -> Bools:
    """Which rows can be; those that cannot are counted as lost."""
    device, whole = columns["deviceId"], np.ones(len(columns["start"]), bool)
    for keep, why in (
        (columns["end"] >= columns["start"], "end before they start"),
        ((device >= 0) & (device <= MAX_DEVICE), "name no device that there can be"),
    ):
        if dropped := int(np.count_nonzero(whole & ~keep)):
            what = f"{dropped:,} rows of {table} {why}: dropped"
            file.losses.append(Loss(what, -1, 0, dropped, may_hide_device_work=True))
        whole &= keep
    return whole


def _joined(parts: list[Activities]) -> Activities:
    empty = np.empty(0, np.int64)
    columns = ([getattr(part, name) for part in parts] or [empty] for name in Activities.__slots__)
    return Activities(*(np.concatenate(pieces) for pieces in columns))


def _graph_id(columns: Columns) -> I64:
    graph: I64 = columns["graphId"].copy()
    if "graphExecId" in columns:
        graph[graph == 0] = columns["graphExecId"][graph == 0]
    graph[(graph == 0) & (columns["graphNodeId"] != 0)] = UNNAMED_GRAPH
    return graph


def _kernel_names(names: Names, columns: Columns) -> I64:
    whole, short = columns["demangledName"], columns["shortName"]
    return names.of_strings(np.where(whole == NO_STRING, short, whole)).astype(np.int64)


def _copy_names(names: Names, columns: Columns) -> I64:
    """As torch.profiler names copies, so that direction and memory are read from the name in one way."""

    def name(kind: int, source: int, target: int) -> str:
        direction = COPY_KINDS[kind] if 0 <= kind < len(COPY_KINDS) else COPY_KINDS[0]
        if kind >= MIGRATIONS_FROM:
            return f"Memcpy {direction} (Unified Memory migration)"
        return f"Memcpy {direction} ({_memory(source)} -> {_memory(target)})"

    return _name_rows(names, name, columns["copyKind"], columns["srcKind"], columns["dstKind"])


def _set_names(names: Names, columns: Columns) -> I64:
    return _name_rows(names, lambda kind: f"Memset ({_memory(kind)})", columns["memKind"])


def _graph_names(names: Names, columns: Columns) -> I64:
    return _name_rows(names, lambda graph: f"CUDA graph {graph} (whole replay)", _graph_id(columns))


def _memory(kind: int) -> str:
    return MEMORY_KINDS[kind] if 0 <= kind < len(MEMORY_KINDS) else MEMORY_KINDS[UNKNOWN_MEMORY]


def _name_rows(names: Names, name: Callable[..., str], *columns: I64) -> I64:
    """Name rows by the values of some columns; each distinct combination is named once."""
    rows, which = distinct_rows(*columns)
    return np.array([names.of(name(*row)) for row in rows], np.int64)[which]


Naming = Callable[[Names, Columns], I64]
_TABLES: tuple[tuple[str, int, dict[str, int | None], Naming], ...] = (
    ("KERNEL", KERNEL, {"demangledName": NO_STRING, "shortName": NO_STRING}, _kernel_names),
    (
        "MEMCPY",
        MEMCPY,
        {"bytes": UNKNOWN_BYTES, "copyKind": 0, "srcKind": UNKNOWN_MEMORY, "dstKind": UNKNOWN_MEMORY},
        _copy_names,
    ),
    ("MEMSET", MEMSET, {"bytes": UNKNOWN_BYTES, "memKind": UNKNOWN_MEMORY}, _set_names),
    ("GRAPH_TRACE", GRAPH, {"graphExecId": 0}, _graph_names),
)
WORK_TABLES = tuple(suffix for suffix, *_ in _TABLES)


@dataclass(frozen=True, slots=True)
class RuntimeCalls:
    """Runtime and driver calls; all arrays have shape (n,)."""

    start_ns: I64
    end_ns: I64
    name_id: I64
    thread: I64
    correlation: I64
    of_driver: I64

    def select(self, keep: Bools) -> RuntimeCalls:
        """The rows that a mask picks."""
        return RuntimeCalls(*(getattr(self, name)[keep] for name in RuntimeCalls.__slots__))


CALLS: dict[str, int | None] = {
    "start": REQUIRED,
    "end": REQUIRED,
    "globalTid": 0,
    "correlationId": 0,
    "nameId": NO_STRING,
    "eventClass": 0,
}


def read_runtime_calls(file: NsysFile, names: Names, busy_only: bool) -> RuntimeCalls:
    """Runtime and driver calls, those that a busy ratio needs alone where that is asked for."""
    columns = file.columns(RUNTIME_TABLE, CALLS, _graph_launches(file) if busy_only else "")
    return RuntimeCalls(
        start_ns=columns["start"],
        end_ns=np.maximum(columns["end"], columns["start"]),
        name_id=names.of_strings(columns["nameId"], _without_version).astype(np.int64),
        thread=columns["globalTid"],
        correlation=columns["correlationId"],
        of_driver=(columns["eventClass"] == DRIVER_EVENT).astype(np.int64),
    )


def _without_version(name: str) -> str:
    return VERSION_SUFFIX.sub("", name)


def _graph_launches(file: NsysFile) -> str:
    if not file.has(RUNTIME_TABLE, "nameId"):
        return "WHERE 0"
    used = f"SELECT nameId FROM {quoted(file.find(RUNTIME_TABLE) or RUNTIME_TABLE)}"
    strings = file.rows("StringIds", "id, value", f"WHERE id IN ({used})")
    wanted = [str(i) for i, name in strings if for_busy_ratio("cuda_runtime", str(name))]
    return f"WHERE nameId IN ({', '.join(wanted)})"
