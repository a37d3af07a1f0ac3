r"""Append-only files of records, one per line, that survive a kill at any moment.

A line is `crc32 of the rest, as 8 hex digits`, a blank, one JSON object, `\n`. It goes to the file in one
write with O_APPEND, so several processes may share a file, and it is with the kernel when `append` returns: a
killed process loses nothing, a machine that loses power may lose the last seconds. What a reader finds
damaged it reports as a `Loss` and goes on with the next line.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from parsers.errors import StoreError, UnreadableInput
from parsers.loss import Loss
from parsers.regular_file import open_regular

PREFIX_BYTES = len("01234567 ")


class NumberedRecord(NamedTuple):
    """A record and its line, counted from 1: the pair of file and line names it for good."""

    line: int
    record: dict[str, Any]


class RecordLog:
    """Appends records to one file. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}: check the folder and its permissions") from error
        self._torn = _ends_torn(self._file)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; NaN and infinity are ValueErrors, since what was not measured is absent."""
        text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        self._write(b"\n" + line if self._torn else line)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        """Write all of it, or leave a torn line that the next append ends and every reader reports."""
        self._torn = True
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            advice = "free some space; the records before it are kept"
            raise StoreError(f"{self.path}: a record was not written ({error.strerror}): {advice}") from error
        self._torn = False


def read_records(path: Path, losses: list[Loss]) -> Iterator[NumberedRecord]:
    """Yield the good records in file order; append to `losses` one entry for each line that is not good."""
    try:
        with open_regular(path) as file:
            offset = 0
            for number, line in enumerate(file, 1):
                record = _decode(line)
                if record is not None:
                    yield NumberedRecord(number, record)
                elif line.strip():
                    losses.append(_loss(number, line, offset))
                offset += len(line)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error


def _decode(line: bytes) -> dict[str, Any] | None:
    """The record of a whole line whose checksum holds."""
    text = line[PREFIX_BYTES:-1]
    if line[:PREFIX_BYTES] != b"%08x " % zlib.crc32(text) or not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(text)
    except ValueError:  # a sum that fits by chance, or lines of another program
        return None
    return record if isinstance(record, dict) else None


def _loss(number: int, line: bytes, offset: int) -> Loss:
    damage = "does not match its checksum" if line.endswith(b"\n") else "was cut off while it was written"
    return Loss(f"line {number} {damage}", offset, len(line), lost_events=1, may_hide_device_work=False)


def _ends_torn(file: int) -> bool:
    """Whether the last line lacks its end, because somebody was killed or the disk was full."""
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"
