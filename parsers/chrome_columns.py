"""Columns of decoded events, grown block by block, joined across processes.

`Parts` is what one decoder has after its share of a file: lists of numpy chunks and interned texts. Parts of
several decoders join into one (`join`), and travel between processes (`send`, `receive`) as msgpack and raw
array bytes, so that nothing is ever unpickled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from parsers.chrome_categories import ROLE_OF
from parsers.chrome_model import Collective, GemmShape
from parsers.loss import Loss

INTERNED_TEXT_LIMIT_BYTES = 64 << 20
MOST_CATEGORIES = 1_000
MOST_TRACKS = 100_000
MOST_LABELS = 100_000
MOST_COUNTS = 10_000
LABEL_LIMIT = 1_000
"""Bounds on what a file can make perfkit keep beside the table rows; real files stay far below each."""
TOO_MANY = "(too many different ones to keep apart)"

DEVICE_COLUMNS = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "kind": np.int8,
    "name_id": np.int32,
    "device": np.int32,
    "stream": np.int64,
    "correlation": np.int64,
    "graph_id": np.int64,
    "nbytes": np.int64,
}
HOST_COLUMNS = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "category_id": np.int16,
    "name_id": np.int32,
    "track_id": np.int32,
    "correlation": np.int64,
}

Column = npt.NDArray[Any]
ProcessId = int | float | str | None
TrackKey = tuple[ProcessId, int | float | str | None]
Chunk = dict[str, Column]
PlacedChunk = tuple[int, Chunk]
"""A chunk and the text offset it comes from, so that tables do not depend on who decoded what."""


class Interner(dict[Any, int]):
    """value → small integer in order of first sight; bounded: what comes after the bound shares the id of
    `full`, but for `always`, values that are never turned away.
    """

    def __init__(self, full: Any = TOO_MANY, most: int = 1 << 31, always: Container[Any] = ()) -> None:
        super().__init__()
        self._left_bytes, self._most = INTERNED_TEXT_LIMIT_BYTES, most
        self._full, self._always = full, always
        self.overflowed = False

    def __missing__(self, value: Any) -> int:
        self._left_bytes -= len(value) + 64
        has_room = self._left_bytes >= 0 and len(self) < self._most
        if value == self._full or not (has_room or value in self._always):
            self.overflowed = True
            return self.setdefault(self._full, len(self))
        self[value] = index = len(self)
        return index


class Fault(NamedTuple):
    """What was wrong with single events, whether they may have been device work, and whether it cost them."""

    what: str
    may_hide_device_work: bool
    dropped: bool = True


@dataclass(slots=True)
class OpenRange:
    """A begin or end event (`ph` B or E) that waits for its partner; `order` is its place in the file."""

    order: int
    phase: str
    ts_ns: int
    category: str
    name: str
    track_id: int
    device: int


@dataclass(slots=True)
class Parts:
    """Everything one decoder keeps. `labels` holds "pid" or "pid/tid" → (place in the file, name): the last
    one counts. `counts` holds (category, phase) → events; `faults` the number of events
    of each; `device_processes` has each (device, process id that it is filed under);
    `losses` has one for each (what, whether it may hide
    device work), summed up at its first place."""

    device: list[PlacedChunk] = field(default_factory=list)
    host: list[PlacedChunk] = field(default_factory=list)
    names: Interner = field(default_factory=Interner)
    categories: Interner = field(default_factory=lambda: Interner(most=MOST_CATEGORIES, always=ROLE_OF))
    tracks: Interner = field(default_factory=lambda: Interner((TOO_MANY, TOO_MANY), MOST_TRACKS))
    labels: dict[str, tuple[int, str]] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    device_like: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    zero_timestamps: Counter[int] = field(default_factory=Counter)
    device_processes: set[tuple[int, ProcessId]] = field(default_factory=set)
    gemms: list[GemmShape] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    ranges: list[OpenRange] = field(default_factory=list)
    losses: dict[tuple[str, bool], Loss] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int | None = None
    window_end_ns: int | None = None

    def file_under(self, places: set[tuple[int, ProcessId]]) -> None:
        """Note which process ids the operations of each device are filed under."""
        if len(self.device_processes) < MOST_TRACKS:
            self.device_processes |= places

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the stretch of time that holds any event at all."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the counts of events by category and phase."""
        for key, events in counts.items():
            known = key in self.counts or len(self.counts) < MOST_COUNTS
            self.counts[key if known else (TOO_MANY, "")] += events

    def label(self, key: str, order: int, text: str) -> None:
        """Keep the name of a process or thread."""
        known = self.labels.get(key)
        if order >= known[0] if known else len(self.labels) < MOST_LABELS:
            self.labels[key] = order, text[:LABEL_LIMIT]

    def window_end(self, at_ns: int) -> None:
        """Note the end of the recorded window as the file states it."""
        self.window_end_ns = at_ns if self.window_end_ns is None else max(self.window_end_ns, at_ns)

    def lose(self, loss: Loss) -> None:
        """Note a loss; those of one kind become one."""
        kind = loss.what, loss.may_hide_device_work
        if (known := self.losses.get(kind)) is not None:
            loss = replace(
                known,
                offset=min(known.offset, loss.offset),
                lost_bytes=known.lost_bytes + loss.lost_bytes,
                lost_events=known.lost_events + loss.lost_events,
            )
        self.losses[kind] = loss


def concatenate(chunks: list[PlacedChunk], columns: dict[str, Any]) -> Chunk:
    """One array a column, rows in file order. The chunks are emptied on the way, so that a large table is
    not held twice.
    """
    joined = {}
    chunks.sort(key=lambda placed: placed[0])
    for name, dtype in columns.items():
        pieces = [chunk.pop(name) for _, chunk in chunks]
        joined[name] = np.concatenate(pieces).astype(dtype, copy=False) if pieces else np.empty(0, dtype)
    chunks.clear()
    return joined


def join(into: Parts, other: Parts) -> None:
    """Add another decoder's share; its ids are translated to those of `into`."""
    names, categories = _translation(into.names, other.names), _translation(into.categories, other.categories)
    tracks = _translation(into.tracks, other.tracks)
    ids = {"name_id": names, "track_id": tracks, "category_id": categories}
    into.device += [(at, translate(chunk, ids)) for at, chunk in other.device]
    into.host += [(at, translate(chunk, ids)) for at, chunk in other.host]
    for gemm in other.gemms:
        into.gemms.append(
            replace(gemm, name_id=int(names[gemm.name_id]), track_id=int(tracks[gemm.track_id]))
        )
    for range_ in other.ranges:
        into.ranges.append(replace(range_, track_id=int(tracks[range_.track_id])))
    for key, (order, text) in other.labels.items():
        into.label(key, order, text)
    into.count(other.counts)
    into.device_like.update(other.device_like)
    into.faults.update(other.faults)
    into.zero_timestamps.update(other.zero_timestamps)
    into.file_under(other.device_processes)
    into.collectives += other.collectives
    for loss in other.losses.values():
        into.lose(loss)
    if other.first_ns is not None and other.last_ns is not None:
        into.span(other.first_ns, other.last_ns)
    if other.window_end_ns is not None:
        into.window_end(other.window_end_ns)


def translate(chunk: Chunk, new_ids: Mapping[str, Column]) -> Chunk:
    """The chunk with the ids of some columns replaced: new id = `new_ids[column][old id]`."""
    renamed = {name: new_ids[name][column] for name, column in chunk.items() if name in new_ids}
    return {**chunk, **renamed}


def _translation(into: Interner, other: Interner) -> Column:
    return np.array([into[value] for value in other], np.int32)


class _Header(msgspec.Struct):
    """The small things of `Parts`, and offset and length of the chunks that follow on the wire, in order."""

    device: list[tuple[int, int]]
    host: list[tuple[int, int]]
    names: list[str]
    categories: list[str]
    tracks: list[TrackKey]
    labels: dict[str, tuple[int, str]]
    counts: list[tuple[tuple[str, str], int]]
    device_like: dict[str, int]
    faults: list[tuple[Fault, int]]
    zero_timestamps: dict[int, int]
    device_processes: list[tuple[int, ProcessId]]
    gemms: list[GemmShape]
    collectives: list[Collective]
    ranges: list[OpenRange]
    losses: list[Loss]
    first_ns: int | None
    last_ns: int | None
    window_end_ns: int | None


def send(parts: Parts, out: BinaryIO) -> None:
    """Write the parts: 8 bytes of header length, the header in msgpack, then each array's bytes."""
    header = msgspec.msgpack.encode(
        _Header(
            [(at, len(c["start_ns"])) for at, c in parts.device],
            [(at, len(c["start_ns"])) for at, c in parts.host],
            list(parts.names),
            list(parts.categories),
            list(parts.tracks),
            parts.labels,
            list(parts.counts.items()),
            parts.device_like,
            list(parts.faults.items()),
            parts.zero_timestamps,
            list(parts.device_processes),
            parts.gemms,
            parts.collectives,
            parts.ranges,
            list(parts.losses.values()),
            parts.first_ns,
            parts.last_ns,
            parts.window_end_ns,
        )
    )
    out.write(len(header).to_bytes(8, "little"))
    out.write(header)
    for chunks, columns in ((parts.device, DEVICE_COLUMNS), (parts.host, HOST_COLUMNS)):
        for _, chunk in chunks:
            for name, dtype in columns.items():
                out.write(np.ascontiguousarray(chunk[name], dtype).data)
    out.flush()


def receive(source: BinaryIO) -> Parts:
    """Read what `send` wrote. Raises EOFError where the sender died before its end."""
    header = msgspec.msgpack.decode(
        _exactly(source, int.from_bytes(_exactly(source, 8), "little")), type=_Header
    )
    parts = Parts(
        labels=header.labels,
        counts=Counter(dict(header.counts)),
        device_like=Counter(header.device_like),
        faults=Counter(dict(header.faults)),
        zero_timestamps=Counter(header.zero_timestamps),
        device_processes=set(header.device_processes),
        gemms=header.gemms,
        collectives=header.collectives,
        ranges=header.ranges,
        first_ns=header.first_ns,
        last_ns=header.last_ns,
        window_end_ns=header.window_end_ns,
    )
    for interner, values in (
        (parts.names, header.names),
        (parts.categories, header.categories),
        (parts.tracks, header.tracks),
    ):
        for value in values:
            interner[value]
    for loss in header.losses:
        parts.lose(loss)
    parts.device = [(at, _receive_chunk(source, n, DEVICE_COLUMNS)) for at, n in header.device]
    parts.host = [(at, _receive_chunk(source, n, HOST_COLUMNS)) for at, n in header.host]
    return parts


def _receive_chunk(source: BinaryIO, length: int, columns: dict[str, Any]) -> Chunk:
    return {
        name: np.frombuffer(_exactly(source, length * np.dtype(dtype).itemsize), dtype)
        for name, dtype in columns.items()
    }


def _exactly(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError(f"{len(data)} of {size} bytes")
    return data
