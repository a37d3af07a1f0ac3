"""Columns of decoded events, grown block by block, joined across processes.

`Parts` is what one decoder has after its share of a file: lists of numpy chunks and interned texts. Parts of
several decoders join into one (`join`), and travel between processes (`send`, `receive`) as msgpack and raw
array bytes, so that nothing is ever unpickled.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from parsers.chrome_model import Collective, GemmShape
from parsers.loss import Loss

INTERNED_TEXT_LIMIT_BYTES = 64 << 20
INTERN_FULL = "(too many different names to keep)"

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
TrackKey = tuple[int | float | str | None, int | float | str | None]
Chunk = dict[str, Column]


class Interner(dict[Any, int]):
    """value → small integer in order of first sight; bounded, what comes after the bound shares one id."""

    def __init__(self) -> None:
        super().__init__()
        self._left = INTERNED_TEXT_LIMIT_BYTES
        self.overflowed = False

    def __missing__(self, value: Any) -> int:
        self._left -= len(value) + 64
        if self._left < 0 and not self.overflowed:
            self.overflowed = True
            super().__setitem__(INTERN_FULL, len(self))
        if self.overflowed:
            return super().__getitem__(INTERN_FULL)
        index = len(self)
        super().__setitem__(value, index)
        return index


@dataclass(slots=True)
class OpenRange:
    """A begin or end event (`ph` B or E) that waits for its partner; `order` is its place in the file."""

    order: int
    phase: str
    ts_ns: int
    category: str
    name: str
    track_id: int


@dataclass(slots=True)
class Parts:
    """Everything one decoder keeps. `counts` holds (category, phase) → events; `faults` (what was wrong,
    whether it touches device work) → number of events."""

    device: list[Chunk] = field(default_factory=list)
    host: list[Chunk] = field(default_factory=list)
    names: Interner = field(default_factory=Interner)
    categories: Interner = field(default_factory=Interner)
    tracks: Interner = field(default_factory=Interner)
    labels: dict[str, str] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    device_like: Counter[str] = field(default_factory=Counter)
    faults: Counter[tuple[str, bool]] = field(default_factory=Counter)
    zero_timestamps: Counter[int] = field(default_factory=Counter)
    gemms: list[GemmShape] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    ranges: list[OpenRange] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    first_ns: int | None = None
    last_ns: int | None = None
    window_end_ns: int | None = None

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the stretch of time that holds any event at all."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)


def concatenate(chunks: list[Chunk], columns: dict[str, Any]) -> Chunk:
    """One array a column. The chunks are emptied on the way, so that a large table is not held twice."""
    joined = {}
    for name, dtype in columns.items():
        pieces = [chunk.pop(name) for chunk in chunks]
        joined[name] = np.concatenate(pieces).astype(dtype, copy=False) if pieces else np.empty(0, dtype)
    chunks.clear()
    return joined


def join(into: Parts, other: Parts) -> None:
    """Add another decoder's share; its ids are translated to those of `into`."""
    names, categories = _translation(into.names, other.names), _translation(into.categories, other.categories)
    tracks = _translation(into.tracks, other.tracks)
    for chunk in other.device:
        into.device.append({**chunk, "name_id": names[chunk["name_id"]]})
    for chunk in other.host:
        renamed = {"name_id": names[chunk["name_id"]], "track_id": tracks[chunk["track_id"]]}
        into.host.append(
            {**chunk, **renamed, "category_id": categories[chunk["category_id"]].astype(np.int16)}
        )
    for gemm in other.gemms:
        into.gemms.append(
            replace(gemm, name_id=int(names[gemm.name_id]), track_id=int(tracks[gemm.track_id]))
        )
    for range_ in other.ranges:
        into.ranges.append(replace(range_, track_id=int(tracks[range_.track_id])))
    into.labels.update(other.labels)
    into.counts.update(other.counts)
    into.device_like.update(other.device_like)
    into.faults.update(other.faults)
    into.zero_timestamps.update(other.zero_timestamps)
    into.collectives += other.collectives
    into.losses += other.losses
    if other.first_ns is not None and other.last_ns is not None:
        into.span(other.first_ns, other.last_ns)
    if into.window_end_ns is None:
        into.window_end_ns = other.window_end_ns


def _translation(into: Interner, other: Interner) -> Column:
    return np.array([into[value] for value in other], np.int32)


class _Header(msgspec.Struct):
    """The small things of `Parts`, and the lengths of the arrays that follow on the wire, in order."""

    device_lengths: list[int]
    host_lengths: list[int]
    names: list[str]
    categories: list[str]
    tracks: list[TrackKey]
    labels: dict[str, str]
    counts: list[tuple[tuple[str, str], int]]
    device_like: dict[str, int]
    faults: list[tuple[tuple[str, bool], int]]
    zero_timestamps: dict[int, int]
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
            [len(c["start_ns"]) for c in parts.device],
            [len(c["start_ns"]) for c in parts.host],
            list(parts.names),
            list(parts.categories),
            list(parts.tracks),
            parts.labels,
            list(parts.counts.items()),
            parts.device_like,
            list(parts.faults.items()),
            parts.zero_timestamps,
            parts.gemms,
            parts.collectives,
            parts.ranges,
            parts.losses,
            parts.first_ns,
            parts.last_ns,
            parts.window_end_ns,
        )
    )
    out.write(len(header).to_bytes(8, "little"))
    out.write(header)
    for chunks, columns in ((parts.device, DEVICE_COLUMNS), (parts.host, HOST_COLUMNS)):
        for chunk in chunks:
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
        gemms=header.gemms,
        collectives=header.collectives,
        ranges=header.ranges,
        losses=header.losses,
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
    parts.device = [_receive_chunk(source, n, DEVICE_COLUMNS) for n in header.device_lengths]
    parts.host = [_receive_chunk(source, n, HOST_COLUMNS) for n in header.host_lengths]
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
