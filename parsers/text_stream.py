"""Any trace file as one stream of text bytes: plain or gzip, told by content and never by name.

Memory is bounded by the caller's buffer: a gzip file is inflated piece by piece, and one that inflates beyond
reason is refused. What a damaged gzip file still holds is delivered, up to the byte; the damage becomes a
`Loss`. The file's sha256 is taken on the way, so that no sound file is read twice.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Protocol

from isal import isal_zlib

from parsers.errors import UnreadableInput
from parsers.gzip_damage import text_before_damage
from parsers.loss import Loss
from parsers.regular_file import open_regular

READ_BYTES = 1 << 18
"""Of the file at a time: packed text that is not yet unpacked is copied at every step, so not too much."""
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WBITS = 31
USUAL_GZIP_RATIO = 18
"""Typical of traces (10 to 60), for a guess at the size of the text."""
_UTF16 = "UTF-16 text (convert with: iconv -f UTF-16 -t UTF-8)"
FOREIGN_MAGIC = {
    b"\x28\xb5\x2f\xfd": "zstd (unpack with: zstd -d)",
    b"\xfd7zXZ\x00": "xz (unpack with: xz -d)",
    b"BZh": "bzip2 (unpack with: bzip2 -d)",
    b"PK\x03\x04": "zip (unpack with: unzip)",
    b"SQLite format 3\x00": "an SQLite database (for an nsys export use --nsys)",
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"{\x00": _UTF16,
    b"[\x00": _UTF16,
    b"\x00{": _UTF16,
    b"\x00[": _UTF16,
}
BOMB_RATIO = 500
"""Inflation beyond which a gzip file is refused; real traces reach 20 to 60, deflate can reach 1,032."""
BOMB_FLOOR_BYTES = 1 << 30


class TextStream(Protocol):
    """A source of text bytes. `read(limit)` returns at most `limit` bytes, b"" at the end.

    `read_into` fills a writable view instead and returns how many bytes it got, 0 at the end. `likely_bytes`
    is a guess at the size of the text; `close` may be called at any time and more than once.
    """

    losses: list[Loss]
    likely_bytes: int

    def read(self, limit: int) -> bytes: ...

    def read_into(self, view: memoryview) -> int: ...

    def finish(self) -> tuple[str, int]:
        """(sha256 of the file, its size in bytes); reads what is left of it."""
        ...

    def close(self) -> None: ...


class _File:
    """The raw file, hashed as it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._handle = open_regular(path)
            self.size_bytes = os.fstat(self._handle.fileno()).st_size
        except OSError as error:
            raise UnreadableInput(f"{path}: cannot be opened: {_reason(error)}") from error
        self._hash = hashlib.sha256()
        self._size = 0

    def read(self, limit: int) -> bytes:
        with self._explaining():
            data = self._handle.read(limit) or b""
        self._account(data)
        return data

    def read_into(self, view: memoryview) -> int:
        with self._explaining():
            length = self._handle.readinto(view) or 0
        self._account(view[:length])
        return length

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnreadableInput(f"{self.path}: reading failed: {_reason(error)}") from error

    def _account(self, data: bytes | memoryview) -> None:
        self._hash.update(data)
        self._size += len(data)

    def finish(self) -> tuple[str, int]:
        while self.read(READ_BYTES):
            pass
        return self._hash.hexdigest(), self._size

    def close(self) -> None:
        self._handle.close()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class _Plain:
    def __init__(self, file: _File, head: bytes) -> None:
        self._file, self._head = file, head
        self.losses: list[Loss] = []
        self.likely_bytes = file.size_bytes
        self.finish, self.close = file.finish, file.close

    def read(self, limit: int) -> bytes:
        if self._head:
            data, self._head = self._head[:limit], self._head[limit:]
            return data
        return self._file.read(limit)

    def read_into(self, view: memoryview) -> int:
        if self._head:
            return _copy(self.read(len(view)), view)
        return self._file.read_into(view)


def _copy(data: bytes, view: memoryview) -> int:
    view[: len(data)] = data
    return len(data)


class _Gzip:
    """Concatenated gzip members, inflated as they are asked for."""

    def __init__(self, file: _File, head: bytes) -> None:
        self._file, self._packed = file, head
        self.losses: list[Loss] = []
        self.likely_bytes = file.size_bytes * USUAL_GZIP_RATIO
        self.finish, self.close = file.finish, file.close
        self._text_bytes, self._packed_bytes = 0, len(head)
        self._rest: Iterator[bytes] | None = None
        """Once the inflater is done or has failed: what is still to be delivered."""
        self._spare = b""
        self._begin_member()

    def read(self, limit: int) -> bytes:
        while self._rest is None:
            more = bool(self._packed) or self._refill()
            if data := self._inflate(limit):  # without further input, too: it may hold some text
                return self._count(data)
            if not more and self._rest is None:
                self._end()
        data = self._spare or next(self._rest, b"")
        self._spare = data[limit:]
        return self._count(data[:limit])

    def read_into(self, view: memoryview) -> int:
        return _copy(self.read(len(view)), view)

    def _count(self, data: bytes) -> bytes:
        self._text_bytes += len(data)
        if self._text_bytes > max(BOMB_FLOOR_BYTES, BOMB_RATIO * self._packed_bytes):
            raise UnreadableInput(
                f"{self._file.path}: {self._packed_bytes:,} bytes inflate to over {self._text_bytes:,}: "
                f"refused as a gzip bomb (limit {BOMB_RATIO}-fold). If it is a real trace, unpack it first"
            )
        return data

    def _begin_member(self) -> None:
        self._inflater = isal_zlib.decompressobj(wbits=GZIP_WBITS)
        self._member_at, self._member_text_at = self._packed_bytes - len(self._packed), self._text_bytes

    def _refill(self) -> bool:
        self._packed = self._file.read(READ_BYTES)
        self._packed_bytes += len(self._packed)
        return bool(self._packed)

    def _end(self) -> None:
        self._rest = iter(())
        if not self._inflater.eof:
            self._lose("the gzip file ends before its end: it was cut", rest_is_missing=True)

    def _inflate(self, limit: int) -> bytes:
        if self._inflater.eof and not self._next_member():
            return b""
        try:
            data: bytes = self._inflater.decompress(self._packed, limit)
        except isal_zlib.error as error:  # type: ignore[misc]
            self._lose(f"the gzip data are damaged ({error})", rest_is_missing=True)
            known = self._text_bytes - self._member_text_at
            self._rest = text_before_damage(self._file.path, self._member_at, known)
            return b""
        self._packed = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
        return data

    def _next_member(self) -> bool:
        """Whether another member follows; padding of zero bytes between and after members is allowed."""
        while not (packed := self._packed.lstrip(b"\x00")):
            if not self._refill():
                return False
        self._packed = packed
        if GZIP_MAGIC.startswith(packed[: len(GZIP_MAGIC)]):
            self._begin_member()
            return True
        self._rest = iter(())
        self._lose("bytes after the gzip data are not gzip: ignored", hides=False)
        return False

    def _lose(self, what: str, hides: bool = True, rest_is_missing: bool = False) -> None:
        self.losses.append(Loss(what, self._text_bytes, 0, 0, hides, rest_is_missing))


def open_text(path: str, *, wanted: str = "JSON", utf16: bool = False) -> TextStream:
    """Open a plain or gzip file; the caller closes it. `utf16` lets such text pass, as the bytes that it is.

    Raises UnreadableInput where it cannot be opened, is empty, no regular file or not what is `wanted`.
    """
    file = _File(path)
    try:
        head = file.read(READ_BYTES)
        if not head:
            raise UnreadableInput(f"{path}: the file is empty: nothing was recorded, or the copy failed")
        if not (utf16 and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
            refuse_foreign(path, head, wanted)
    except UnreadableInput:
        file.close()
        raise
    return _Gzip(file, head) if head.startswith(GZIP_MAGIC) else _Plain(file, head)


def refuse_foreign(path: str, head: bytes, wanted: str = "JSON") -> None:
    """Raise UnreadableInput, with what to do, where the content begins like another known format."""
    for magic, what in FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise UnreadableInput(f"{path}: this is {what}, not {wanted} or gzip")
