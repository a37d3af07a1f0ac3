"""The tables of a read trace as plain rows, ids resolved to what they stand for, for tests to compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from parsers.trace_model import KIND_NAMES, DeviceTrace


class DeviceRow(NamedTuple):
    """One device operation; times in ns."""

    start_ns: int
    end_ns: int
    kind: str
    name: str
    device: int
    stream: int
    correlation: int
    graph_id: int
    nbytes: int


class HostRow(NamedTuple):
    """One host span; times in ns."""

    start_ns: int
    end_ns: int
    category: str
    name: str
    pid: str
    tid: str
    correlation: int


def device_rows(trace: DeviceTrace) -> list[DeviceRow]:
    """The device operations in table order."""
    ops = trace.device_ops
    kinds = [KIND_NAMES[kind] for kind in ops.kind.tolist()]
    names = [trace.names[i] for i in ops.name_id.tolist()]
    ids = (ops.device, ops.stream, ops.correlation, ops.graph_id, ops.nbytes)
    numbers = [column.tolist() for column in ids]
    rows = zip(ops.start_ns.tolist(), ops.end_ns.tolist(), kinds, names, *numbers, strict=True)
    return [DeviceRow(*row) for row in rows]


def host_rows(trace: DeviceTrace) -> list[HostRow]:
    """The host spans in table order."""
    host = trace.host
    categories = [trace.categories[i] for i in host.category_id.tolist()]
    names = [trace.names[i] for i in host.name_id.tolist()]
    tracks = [trace.tracks[i] for i in host.track_id.tolist()]
    where = [track.pid for track in tracks], [track.tid for track in tracks]
    times = host.start_ns.tolist(), host.end_ns.tolist()
    rows = zip(*times, categories, names, *where, host.correlation.tolist(), strict=True)
    return [HostRow(*row) for row in rows]


def inventory(trace: DeviceTrace) -> dict[tuple[str, str], int]:
    """(category, phase) → events."""
    return {(row.category, row.phase): row.events for row in trace.inventory}


def roles(trace: DeviceTrace) -> dict[str, str]:
    """category → what perfkit takes it for."""
    return {row.category: row.role for row in trace.inventory}


def tables(trace: DeviceTrace) -> tuple[object, ...]:
    """Everything of a trace that does not depend on the file's name, layout and packing."""
    rows = device_rows(trace), host_rows(trace), inventory(trace), trace.gemms, trace.collectives
    return *rows, trace.names, trace.categories, trace.tracks, trace.recorded_ns, trace.zero_timestamps


def busy_ns_by_device(rows: Iterable[DeviceRow], kinds: Sequence[str] = KIND_NAMES) -> dict[int, int]:
    """Length of the union of each device's operations, swept one by one."""
    busy: dict[int, int] = defaultdict(int)
    reached: dict[int, int] = {}
    for row in sorted(rows):
        if row.kind in kinds:
            reach = reached.get(row.device, row.start_ns)
            busy[row.device] += max(0, row.end_ns - max(row.start_ns, reach))
            reached[row.device] = max(reach, row.end_ns)
    return dict(busy)
