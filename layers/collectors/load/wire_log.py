"""Whole exchanges on disk, as they came: one write each when it ends, read back after the run.

    magic (4 bytes), crc32 of what follows it, lengths of head, stamps and body (4 x u32)
    head: JSON · stamps: a pair of i64 a piece (when it came, its length) · body

A killed process loses no exchange that had ended. A damaged one is a `Loss` and the next is looked for.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layers.collectors.load.endpoints.endpoint import Answer, Piece
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.records import Outcome, Phase
from parsers.errors import StoreError, UnreadableInput
from parsers.loss import Loss

MAGIC = b"PKW1"
FRAME = struct.Struct("<4s4I")
CHECKED_FROM = 8
"""Behind the magic and the checksum itself."""


class Head(msgspec.Struct, array_like=True):
    """An exchange without its body; fields as in `Exchange`."""

    sequence: int
    attempt: int
    phase: Phase
    item: str
    process: int
    ending: Outcome
    error: str
    status: int
    intended_ns: int
    sent_ns: int
    connected_ns: int
    first_byte_ns: int
    end_ns: int
    request_bytes: int
    response_bytes: int
    reads: int
    headers: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One exchange read back."""

    head: Head
    pieces: tuple[Piece, ...]

    @property
    def answer(self) -> Answer:
        return Answer(self.head.status, dict(self.head.headers), self.pieces)


class WireLog:
    """Appends to one file; StoreError where that fails."""

    def __init__(self, path: Path, process: int) -> None:
        self.path, self._process = path, process
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}: check the folder and its permissions") from error
        self._encode = msgspec.json.Encoder().encode

    def append(self, exchange: Exchange) -> None:
        head = self._encode(_head(exchange, self._process))
        stamps = array("q")
        for stamp, part in zip(exchange.part_ns, exchange.parts, strict=True):
            stamps.append(stamp)
            stamps.append(len(part))
        parts = [head, stamps.tobytes(), b"".join(exchange.parts)]
        lengths = struct.pack("<3I", *map(len, parts))
        rest = b"".join((lengths, *parts))
        self._write(MAGIC + zlib.crc32(rest).to_bytes(4, "little") + rest)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            advice = "free some space; the requests before it are kept"
            what = f"a request was not written ({error.strerror}): {advice}"
            raise StoreError(f"{self.path}: {what}") from error


def _head(exchange: Exchange, process: int) -> Head:
    return Head(
        exchange.sequence,
        exchange.attempt,
        exchange.phase,
        exchange.item,
        process,
        exchange.ending,
        exchange.error,
        exchange.status,
        exchange.intended_ns,
        exchange.sent_ns,
        exchange.connected_ns,
        exchange.first_byte_ns,
        exchange.end_ns,
        len(exchange.request),
        exchange.response_bytes,
        exchange.reads,
        [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in exchange.headers],
    )


def read_wire(path: Path, losses: list[Loss]) -> Iterator[Recorded]:
    """The exchanges of a log in file order; what is damaged goes to `losses`."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:  # cannot be mapped
                return
            data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error
    with data:
        yield from _read_all(data, losses)


def _read_all(data: mmap.mmap, losses: list[Loss]) -> Iterator[Recorded]:
    at = 0
    while at < len(data):
        recorded, end = _read_one(data, at)
        if recorded is not None:
            yield recorded
        else:
            end = _next(data, at + 1)
            losses.append(Loss("an exchange is damaged or cut off", at, end - at, 1, False))
        at = end


def _next(data: mmap.mmap, start: int) -> int:
    """Where the next whole exchange begins, else the end."""
    at = data.find(MAGIC, start)
    while at >= 0 and _read_one(data, at)[0] is None:
        at = data.find(MAGIC, at + 1)
    return at if at >= 0 else len(data)


def _read_one(data: mmap.mmap, at: int) -> tuple[Recorded | None, int]:
    if data[at : at + len(MAGIC)] != MAGIC or len(data) - at < FRAME.size:
        return None, at
    _, checksum, head_bytes, stamp_bytes, body_bytes = FRAME.unpack_from(data, at)
    start = at + FRAME.size
    end = start + head_bytes + stamp_bytes + body_bytes
    if end > len(data) or zlib.crc32(data[at + CHECKED_FROM : end]) != checksum:
        return None, at
    try:
        head = msgspec.json.decode(data[start : start + head_bytes], type=Head)
    except msgspec.DecodeError:  # a checksum that fits by chance
        return None, at
    stamps = array("q", data[start + head_bytes : start + head_bytes + stamp_bytes])
    body_at = start + head_bytes + stamp_bytes
    return Recorded(head, tuple(_pieces(data, body_at, stamps))), end


def _pieces(data: mmap.mmap, at: int, stamps: array[int]) -> Iterator[Piece]:
    for stamp, length in zip(stamps[::2], stamps[1::2], strict=True):
        yield Piece(stamp, data[at : at + length])
        at += length
