"""The tables that a trace is read into: plain numpy columns, times in integer nanoseconds.

A chrome trace and an export of nsys fill the same ones. Two hold the events (work on the device, spans on the
host); names and tracks are interned. All times share one clock, the trace's own (`ts` of the file, in ns).
The tables are sorted by start time, of equal starts the longest first. Nothing here knows how the file was
laid out, and nothing judges.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from parsers.loss import Loss

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I16 = npt.NDArray[np.int16]
I8 = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

KERNEL, MEMCPY, MEMSET, GRAPH = 0, 1, 2, 3
KIND_NAMES = ("kernel", "memcpy", "memset", "graph")

NO_STREAM = -1
NO_CORRELATION = -1
UNKNOWN_BYTES = -1

PROCESS_SHIFT = 32
"""Correlation ids count within a process: a file of several has (number of the process << 32) + id."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeviceOps:
    """Work on a device, one row an operation: kernels (nodes of replayed graphs too), copies and sets.

    All arrays have shape (n,). `kind` is KERNEL, MEMCPY, MEMSET or GRAPH (a whole replay as one interval,
    whose nodes are not recorded); `name_id` indexes `DeviceTrace.names`; `stream`, `correlation` and
    `nbytes` are NO_STREAM, NO_CORRELATION and UNKNOWN_BYTES where the file has none; `graph_id` is 0
    outside graphs and in files that do not record it. `end_ns >= start_ns` holds.
    """

    start_ns: I64
    end_ns: I64
    kind: I8
    name_id: I32
    device: I32
    stream: I64
    correlation: I64
    graph_id: I64
    nbytes: I64

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def runs_kernels(self) -> Bools:
        """Which rows are kernels, or replays that consist of them."""
        found: Bools = (self.kind == KERNEL) | (self.kind == GRAPH)
        return found

    def select(self, keep: Bools | I64) -> DeviceOps:
        """The rows that a boolean mask or an index array picks, in that order."""
        return DeviceOps(*(getattr(self, f.name)[keep] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class HostSpans:
    """Spans on host threads, one row a complete event: runtime calls, operators, annotations, Python frames.

    All arrays have shape (n,). `category_id` indexes `DeviceTrace.categories`, `name_id`
    `DeviceTrace.names`, `track_id` `DeviceTrace.tracks`. `correlation` ties a runtime or driver call to the
    device operations that it launched (many to one for graphs) and is NO_CORRELATION elsewhere. Python
    frames shorter than PYTHON_FRAME_FLOOR_NS are not kept (they are counted in the inventory).
    """

    start_ns: I64
    end_ns: I64
    category_id: I16
    name_id: I32
    track_id: I32
    correlation: I64

    def __len__(self) -> int:
        return len(self.start_ns)

    def select(self, keep: Bools | I64) -> HostSpans:
        """The rows that a boolean mask or an index array picks, in that order."""
        return HostSpans(*(getattr(self, f.name)[keep] for f in fields(self)))


PYTHON_FRAME_FLOOR_NS = 50_000
"""Python frames below 50 µs explain no gap worth naming and are most of a file recorded with stacks."""


@dataclass(frozen=True, slots=True)
class Track:
    """One (pid, tid) of the file, with the names that its metadata events give (empty: none)."""

    pid: str
    tid: str
    process_name: str
    thread_name: str


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """How many events of one category and phase the file holds, and what perfkit takes the category for."""

    category: str
    phase: str
    events: int
    role: str


@dataclass(frozen=True, slots=True)
class GemmShape:
    """Shapes of one matrix product operator: name, start on the host, its dims and dtypes as recorded
    (compact JSON text).
    """

    name_id: int
    start_ns: int
    end_ns: int
    track_id: int
    dims_json: str
    types_json: str


@dataclass(frozen=True, slots=True)
class Collective:
    """What a collective kernel says of itself: start, collective name, elements in and out, dtype, group
    size.
    """

    start_ns: int
    device: int
    name: str
    in_elements: int
    out_elements: int
    dtype: str
    group_size: int


@dataclass(frozen=True, slots=True)
class TraceMeta:
    """What the file says of its own making. `rank` and `world_size` are -1 where it does not say.

    `base_time_ns`: unix time of ts 0 (0: ts is itself since the epoch, or unknown). `device_names` maps a
    device id to its product name; `versions` the recorded runtime versions as text. `producer` is one of
    the names of `parsers.chrome_categories.PRODUCERS`.
    """

    rank: int
    world_size: int
    base_time_ns: int
    device_names: dict[int, str]
    versions: dict[str, str]
    producer: str
    nanosecond_resolution: bool


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeviceTrace:
    """One trace, read.

    `recorded_ns` is the recorded window (the profiler's own span where the file has one, else first to last
    event of any kind), None for an empty file, and where only some of the events were decoded.
    `zero_timestamps` counts, per device, operations written with ts 0 and dur 0 (a recording fault: their
    time is unknown, so they are not in `device_ops`).
    `device_processes` has the process ids that the operations of each device are filed under: a profiler uses
    one for each device, so several are several devices of one number (empty: not known).
    `busy_only` says that host spans were not read at all: their table is then empty because nobody looked,
    and `graph_launches` etc. come from a search for those alone.
    """

    path: str
    sha256: str
    size_bytes: int
    text_bytes: int
    busy_only: bool
    meta: TraceMeta
    names: list[str]
    categories: list[str]
    tracks: list[Track]
    inventory: list[CategoryCount]
    device_ops: DeviceOps
    host: HostSpans
    gemms: list[GemmShape]
    collectives: list[Collective]
    recorded_ns: tuple[int, int] | None
    zero_timestamps: dict[int, int]
    device_processes: dict[int, tuple[str, ...]]
    losses: list[Loss]
