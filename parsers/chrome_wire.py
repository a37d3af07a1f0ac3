"""How the parts of a decoder travel between processes: msgpack and raw array bytes, so that nothing is ever
unpickled.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, BinaryIO

import msgspec
import numpy as np

from parsers.chrome_columns import DEVICE_COLUMNS, HOST_COLUMNS, Chunk
from parsers.chrome_lacking import Lack
from parsers.chrome_parts import Fault, OpenRange, Parts, ProcessId, TrackKey
from parsers.loss import Loss
from parsers.trace_model import Collective, GemmShape


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
    lacking: dict[Lack, int]
    zero_timestamps: dict[int, int]
    device_processes: list[tuple[tuple[int, ProcessId], int]]
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
            parts.lacking,
            parts.zero_timestamps,
            list(parts.device_processes.items()),
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
        lacking=Counter(header.lacking),
        zero_timestamps=Counter(header.zero_timestamps),
        device_processes=Counter(dict(header.device_processes)),
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
