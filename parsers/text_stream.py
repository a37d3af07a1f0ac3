"""Any trace file as one stream of text bytes: plain or gzip, told by content and never by name.

Memory is bounded by the caller's buffer: a gzip file is inflated piece by piece, and one that inflates beyond
reason is refused. What a damaged gzip file still holds is delivered; the damage becomes a `Loss`. The file's
sha256 is taken on the way, so that no file is read twice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Protocol

from isal import isal_zlib

from parsers.errors import UnreadableInput
from parsers.loss import Loss

READ_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
FOREIGN_MAGIC = {
    b"\x28\xb5\x2f\xfd": "zstd (unpack with: zstd -d)",
    b"\xfd7zXZ\x00": "xz (unpack with: xz -d)",
    b"BZh": "bzip2 (unpack with: bzip2 -d)",
    b"PK\x03\x04": "zip (unpack with: unzip)",
    b"SQLite format 3\x00": "an SQLite database (for an nsys export use --nsys)",
    b"\xff\xfe": "UTF-16 text (convert with: iconv -f UTF-16 -t UTF-8)",
    b"\xfe\xff": "UTF-16 text (convert with: iconv -f UTF-16 -t UTF-8)",
}
BOMB_RATIO = 500
"""Inflation beyond which a gzip file is refused; real traces reach 20 to 60, deflate can reach 1,032."""
BOMB_FLOOR_BYTES = 1 << 30


class TextStream(Protocol):
    """A source of text bytes. `read(limit)` returns at most `limit` bytes, b"" at the end."""

    losses: list[Loss]

    def read(self, limit: int) -> bytes: ...

    def finish(self) -> tuple[str, int]:
        """(sha256 of the file, its size in bytes); reads what is left of it."""
        ...


class _File:
    """The raw file, hashed as it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._handle = Path(path).open("rb", buffering=0)  # noqa: SIM115  (closed by finish)
        except OSError as error:
            raise UnreadableInput(f"{path}: cannot be opened: {error.strerror}") from error
        self._hash = hashlib.sha256()
        self._size = 0
        self.losses: list[Loss] = []

    def read(self, limit: int) -> bytes:
        try:
            data = self._handle.read(limit) or b""
        except OSError as error:
            raise UnreadableInput(f"{self.path}: reading failed: {error.strerror}") from error
        self._hash.update(data)
        self._size += len(data)
        return data

    def finish(self) -> tuple[str, int]:
        while self.read(READ_BYTES):
            pass
        self._handle.close()
        return self._hash.hexdigest(), self._size


class _Plain:
    def __init__(self, file: _File, head: bytes) -> None:
        self._file, self._head = file, head
        self.losses = file.losses
        self.finish = file.finish

    def read(self, limit: int) -> bytes:
        if self._head:
            data, self._head = self._head[:limit], self._head[limit:]
            return data
        return self._file.read(limit)


class _Gzip:
    """Concatenated gzip members, inflated as they are asked for."""

    def __init__(self, file: _File, head: bytes) -> None:
        self._file, self._packed = file, head
        self.losses = file.losses
        self._inflater = isal_zlib.decompressobj(wbits=31)
        self._text_bytes, self._packed_bytes = 0, len(head)
        self._over = False

    def read(self, limit: int) -> bytes:
        while not self._over:
            if not self._packed and not self._refill():
                return b""
            data = self._inflate(limit)
            if data:
                self._text_bytes += len(data)
                self._refuse_bomb()
                return data
        return b""

    def _refill(self) -> bool:
        self._packed = self._file.read(READ_BYTES)
        self._packed_bytes += len(self._packed)
        if not self._packed:
            self._over = True
            if not self._inflater.eof:
                self._lose("the gzip file ends before its end: it was cut")
        return bool(self._packed)

    def _inflate(self, limit: int) -> bytes:
        if self._inflater.eof and not self._next_member():
            return b""
        try:
            data: bytes = self._inflater.decompress(self._packed, limit)
        except isal_zlib.error as error:  # type: ignore[misc]
            self._over = True
            self._lose(f"the gzip data are damaged ({error})")
            return b""
        self._packed = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
        return data

    def _next_member(self) -> bool:
        self._packed = self._packed.lstrip(b"\x00")
        if not self._packed:
            return self._refill() and self._next_member()
        if not GZIP_MAGIC.startswith(self._packed[:2]):
            self._over = True
            self._lose("bytes after the gzip data are not gzip: ignored", hides=False)
            return False
        self._inflater = isal_zlib.decompressobj(wbits=31)
        return True

    def _lose(self, what: str, hides: bool = True) -> None:
        self.losses.append(Loss(what, self._text_bytes, 0, 0, hides))

    def _refuse_bomb(self) -> None:
        if self._text_bytes > max(BOMB_FLOOR_BYTES, BOMB_RATIO * self._packed_bytes):
            raise UnreadableInput(
                f"{self._file.path}: {self._packed_bytes:,} bytes inflate to over {self._text_bytes:,}: "
                f"refused as a gzip bomb (limit {BOMB_RATIO}-fold). If it is a real trace, unpack it first"
            )

    def finish(self) -> tuple[str, int]:
        return self._file.finish()


def open_text(path: str) -> TextStream:
    """Open a plain or gzip file. Raises UnreadableInput where it cannot be opened, is empty or something
    else.
    """
    file = _File(path)
    head = file.read(READ_BYTES)
    if not head:
        raise UnreadableInput(f"{path}: the file is empty: nothing was recorded, or the copy failed")
    for magic, what in FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise UnreadableInput(f"{path}: this is {what}, not JSON or gzip")
    return _Gzip(file, head) if head.startswith(GZIP_MAGIC) else _Plain(file, head)
