"""Opens an nsys sqlite export, read-only, and reads columns of it into numpy arrays in bounded memory.

The file is never altered and nothing is created beside it: no journal, no write-ahead log, no index. Columns
are named one by one, since exports hold the target's whole environment and output. Versions differ: a table
may bear a `_V2`, columns come and go, and a table without rows is absent. What a damaged file lost is listed.
Tables that are none of nsys's may lie beside its own; views are never read, since they are foreign code.
Do not expect more than about a million rows a second: rows pass through Python's sqlite3.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.regular_file import open_regular
from parsers.trace_model import I64

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
WAL_FORMAT = 2
"""Byte 18 of a file in write-ahead mode; bytes 16 and 17 hold the page size (sqlite.org/fileformat2.html)."""

REPORT_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
EXPORT_COMMAND = "nsys export --type sqlite"

BLOCK_ROWS = 16_384
"""Rows that are Python objects at one time."""

VERSION_DIGITS = 3
"""Of a version of a table; public ones have one."""

LOCK_WAIT_S = 2.0
NULL = -(1 << 62)
INT64_END = 2.0**63
REQUIRED = None

Row = tuple[Any, ...]
Columns = dict[str, I64]

_UNFINISHED = "SQLITE_READONLY"
"""SQLite would have to undo a write of somebody else first, and this connection cannot write."""
_IN_USE = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_IOERR", "SQLITE_NOTADB")


def looks_like_nsys(path: str) -> bool:
    """Whether a file is for this reader: a SQLite database by its content, a report of nsys by its name."""
    if path.endswith(REPORT_SUFFIXES):
        return True
    try:
        with open_regular(path) as file:
            start = file.read(len(MAGIC))
    except OSError:
        return False
    return start == MAGIC or (not start and path.endswith(".sqlite"))


@contextmanager
def open_export(path: str) -> Iterator[NsysFile]:
    """The export, open for reading. Raises UnreadableInput for what is no database or cannot be opened."""
    header = _header(path)
    connection = sqlite3.connect(_uri(path, header), uri=True, timeout=LOCK_WAIT_S, isolation_level=None)
    try:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        yield NsysFile(path, connection)
    finally:
        connection.close()


def _header(path: str) -> bytes:
    if path.endswith(REPORT_SUFFIXES):
        stem = path.rsplit(".", 1)[0]
        advice = f"run {EXPORT_COMMAND} --output {stem}.sqlite {path}, and give the .sqlite file"
        raise UnreadableInput(f"{path}: a report of nsys, which only nsys reads: {advice}")
    try:
        with open_regular(path) as file:
            header, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error
    if not header:
        raise UnreadableInput(
            f"{path}: the file is empty: the export failed or is still running; export again"
        )
    if not header.startswith(MAGIC) or len(header) < HEADER_BYTES:
        raise UnreadableInput(f"{path}: no SQLite database: make one with {EXPORT_COMMAND}")
    if size < int.from_bytes(header[16:18], "big"):
        raise UnreadableInput(f"{path}: cut in its first page ({size:,} bytes): copy or export it again")
    return header


def _uri(path: str, header: bytes) -> str:
    """SQLite makes files beside a database in write-ahead mode unless told that it cannot change."""
    uri = Path(path).absolute().as_uri()
    if header[18] != WAL_FORMAT:
        return f"{uri}?mode=ro"
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        advice = "close the program that has it open, or export again"
        raise UnreadableInput(f"{path}: a part of it is still in {path}-wal: {advice}")
    return f"{uri}?mode=ro&immutable=1"


class NsysFile:
    """One open export: its tables with their columns, and what was lost in reading them."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self.losses: list[Loss] = []
        self._found: dict[str, str | None] = {}
        self._connection = connection
        try:
            # A file that was cut is refused as a whole otherwise. The connection cannot write either way.
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("BEGIN")
            names = self._names_of("table")
            self._columns = {name: columns for name in names if (columns := self._columns_of(name))}
            self._views = set(self._names_of("view"))
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from error

    def _names_of(self, kind: str) -> list[str]:
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))
        return [str(name) for (name,) in rows]

    def _columns_of(self, table: str) -> frozenset[str]:
        """The columns of a table; none of one that only a SQLite with another extension can open."""
        try:
            rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            return frozenset(str(name) for (name,) in rows)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                return frozenset()
            raise

    @property
    def tables(self) -> Mapping[str, frozenset[str]]:
        """The columns of every table, by its name."""
        return self._columns

    def find(self, table: str) -> str | None:
        """The table of this name, or its latest version (`NAME_V3`), one with rows first; None where there is
        none."""
        if table not in self._found:
            versions = re.compile(rf"{re.escape(table)}(?:_V(\d{{1,{VERSION_DIGITS}}}))?", re.ASCII)
            found = [(int(m[1] or 0), name) for name in self._columns if (m := versions.fullmatch(name))]
            latest = [name for _, name in sorted(found, reverse=True)]
            filled = (name for name in latest if len(latest) > 1 and self._has_rows(name))
            self._found[table] = next(filled, latest[0] if latest else None)
        return self._found[table]

    def _has_rows(self, name: str) -> bool:
        try:
            return self._connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone() is not None
        except sqlite3.DatabaseError:
            return True  # a damaged one had rows, and its reader says what was lost

    def count(self, table: str) -> int:
        """Rows of a table, in the version that is read; 0 where it is absent."""
        name = self.find(table)
        return self.count_itself(name) if name is not None else 0

    def count_itself(self, name: str) -> int:
        """Rows of the table of exactly this name, by the last row id where it has one, since to count them
        would read all of it."""
        try:
            last = self._one(name, "max(rowid)") or 0
        except UnreadableInput:
            last = None  # a table WITHOUT ROWID
        return last if isinstance(last, int) else int(self._one(name, "count(*)"))

    def _one(self, name: str, value: str) -> Any:
        blocks = self._blocks_of(name, value, "", may_hide_device_work=False)
        return next(blocks, [(0,)])[0][0]

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table is there with all of these columns."""
        name = self.find(table)
        return name is not None and self._columns[name].issuperset(columns)

    def rows(self, table: str, columns: str, where: str = "") -> Iterator[Row]:
        """Rows of a small table, one by one; none where it is absent. `columns` and `where` are SQL text."""
        for block in self.blocks(table, columns, where, may_hide_device_work=False):
            yield from block

    def blocks(
        self, table: str, columns: str, where: str = "", *, may_hide_device_work: bool
    ) -> Iterator[list[Row]]:
        """Rows of a table, BLOCK_ROWS at a time; where the file is damaged, those up to the damage."""
        name = self.find(table)
        if name is None:
            self._miss_view(table, may_hide_device_work)
            return
        yield from self._blocks_of(name, columns, where, may_hide_device_work=may_hide_device_work)

    def _blocks_of(
        self, name: str, columns: str, where: str, *, may_hide_device_work: bool
    ) -> Iterator[list[Row]]:
        read, damage = 0, None
        cursor: Iterator[Row] | None = None
        while damage is None:
            rows: list[Row] = []
            try:
                cursor = cursor or self._connection.execute(f"SELECT {columns} FROM {quoted(name)} {where}")
                rows.extend(islice(cursor, BLOCK_ROWS))
            except sqlite3.DatabaseError as error:
                damage = error
            if not rows:
                break
            read += len(rows)
            yield rows
        if damage is not None:
            self._lose(name, read, damage, may_hide_device_work)

    def _miss_view(self, table: str, may_hide_device_work: bool) -> None:
        if table in self._views:
            self._views.remove(table)  # said once
            what = f"{table} is a view, which nsys never writes: not read"
            self.losses.append(Loss(what, -1, 0, 0, may_hide_device_work))

    def _lose(self, table: str, read: int, damage: sqlite3.DatabaseError, may_hide_device_work: bool) -> None:
        """Note what damage cost; anything but damage stops the reading."""
        if not getattr(damage, "sqlite_errorname", "").startswith(_DAMAGED):
            raise self._unreadable(damage) from damage
        what = f"{table}: the file is damaged: {read:,} rows read, how many more there were is unknown"
        self.losses.append(Loss(what, -1, 0, 0, may_hide_device_work))

    def columns(
        self,
        table: str,
        wanted: Mapping[str, int | None],
        where: str = "",
        *,
        only: tuple[str, I64] | None = None,
        may_hide_device_work: bool = False,
    ) -> Columns:
        """Integer columns as arrays of one length, 0 where the table is absent.

        `wanted` says what stands for NULL and for a column that this version lacks; REQUIRED ones must be
        there (else UnreadableInput), and rows in which one is NULL are dropped and counted. `only` keeps the
        rows whose column holds one of the values.
        """
        name = self.find(table)
        present = self._columns[name] if name else frozenset()
        if name:
            if not self._complete(name, present, wanted, may_hide_device_work):
                present = frozenset()
        else:
            self._miss_view(table, may_hide_device_work)
        read = [column for column in wanted if column in present]
        sql = ", ".join(f'ifnull("{c}", {NULL if wanted[c] is REQUIRED else wanted[c]})' for c in read)
        pieces: list[list[I64]] = [[] for _ in read]
        dropped = 0
        for rows in self.blocks(table, sql, where, may_hide_device_work=may_hide_device_work) if read else ():
            block = self.as_array(rows, len(read), table, needed=may_hide_device_work)
            keep = np.ones(len(block), bool)
            for i, column in enumerate(read):
                if wanted[column] is REQUIRED:
                    keep &= block[:, i] != NULL
            dropped += int(np.count_nonzero(~keep))
            if only is not None:
                keep &= np.isin(block[:, read.index(only[0])], only[1])
            kept = block if keep.all() else block[keep]
            for piece, column_values in zip(pieces, kept.T, strict=True):
                piece.append(np.ascontiguousarray(column_values))
        if dropped:
            what = f"{dropped:,} rows of {table} without a time or an id that can be: dropped"
            self.losses.append(Loss(what, -1, 0, dropped, may_hide_device_work))
        return self._joined(wanted, dict(zip(read, pieces, strict=True)))

    def can_be_read(self, table: str, *columns: str) -> bool:
        """Whether the table is there with all of these columns; one that is there without them is a loss."""
        name = self.find(table)
        if name is None:
            return False
        return self._complete(name, self._columns[name], dict.fromkeys(columns, REQUIRED), needed=False)

    def _complete(
        self, name: str, present: frozenset[str], wanted: Mapping[str, int | None], needed: bool
    ) -> bool:
        """Whether a table has all that it takes; UnreadableInput where it has not and is `needed`, else a
        loss."""
        missing = [c for c, default in wanted.items() if default is REQUIRED and c not in present]
        if not missing:
            return True
        why = "the file is damaged, or its schema is one that perfkit does not know"
        what = f"table {name} has no column {', '.join(missing)}: {why}"
        if needed:
            advice = "copy it again, export with an nsys of 2020 to 2026, or report this"
            raise UnreadableInput(f"{self.path}: {what}; {advice}")
        self.losses.append(Loss(f"{what}: not read", -1, 0, 0, may_hide_device_work=False))
        return False

    def as_array(self, rows: Sequence[Row], width: int, table: str, *, needed: bool) -> I64:
        """Rows of integers; one with a number beyond 64 bits is all NULL. So is one with text, but for tables
        that are `needed`, where it raises UnreadableInput."""
        try:
            values = _integers_that_fit(rows, width)
        except (TypeError, ValueError) as error:
            if needed:
                what = f"table {table} holds text where a number belongs"
                raise UnreadableInput(f"{self.path}: {what}: copy or export it again") from error
            numbers = [row if all(map(_is_number, row)) else (NULL,) * width for row in rows]
            values = _integers_that_fit(numbers, width)
        return values.reshape(-1, width)

    @staticmethod
    def _joined(wanted: Mapping[str, int | None], pieces: Mapping[str, list[I64]]) -> Columns:
        joined = {c: np.concatenate(parts) if parts else np.empty(0, np.int64) for c, parts in pieces.items()}
        length = max(map(len, joined.values()), default=0)
        return {c: joined[c] if c in joined else np.full(length, wanted[c] or 0, np.int64) for c in wanted}

    def _unreadable(self, error: sqlite3.DatabaseError) -> UnreadableInput:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(_UNFINISHED):
            advice = "the export was interrupted or is still running: export it again"
            return UnreadableInput(f"{self.path}: an unfinished write lies in {self.path}-journal: {advice}")
        if name.startswith(_IN_USE):
            advice = "wait until the export has finished, or give a copy"
            return UnreadableInput(f"{self.path}: another program is writing it: {advice}")
        if name.startswith(_DAMAGED):
            return UnreadableInput(f"{self.path}: the database is damaged ({error}): copy or export it again")
        return UnreadableInput(f"{self.path}: SQLite cannot read it ({error}): copy or export it again")


def quoted(name: str) -> str:
    """A name of a table as SQL, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def _integers(rows: Sequence[Row], width: int) -> I64:
    return np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width)


def _integers_that_fit(rows: Sequence[Row], width: int) -> I64:
    """The same with NULL for every number of a row that has one beyond 64 bits."""
    try:
        return _integers(rows, width)
    except OverflowError:
        return _integers([row if all(map(_fits, row)) else (NULL,) * width for row in rows], width)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _fits(value: object) -> bool:
    """Whether a cell is no number, or one of 64 bits: a REAL may hold 1e308, a TEXT any digits."""
    if not isinstance(value, float | str):
        return True
    try:
        return -INT64_END <= (value if isinstance(value, float) else int(value)) < INT64_END
    except ValueError:
        return True
