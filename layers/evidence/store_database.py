"""One SQLite file that several processes write to: it waits its turn, commits whole, and says what is wrong.

    foreign, empty, newer files   refused with a StoreError; never written to, never deleted
    another process is writing    waited for, up to `patience_s`
    disk full, read-only, damage  a StoreError in words; what was committed before stays

A transaction starts with BEGIN IMMEDIATE, so it owns the file or has changed nothing. A commit is on the disk
when it returns (synchronous = FULL). sqlite-utils is imported only where a file is opened.
"""

from __future__ import annotations

import random
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from layers.evidence.file_system import Journal
from layers.evidence.store_schema import APPLICATION_ID, VERSION, bring_up_to, columns_of, version_of
from layers.evidence.wording import first_few
from parsers.errors import StoreError

if TYPE_CHECKING:
    from sqlite_utils import Database

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long to wait for other processes. perfkit's own transactions take milliseconds."""

FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.5

ANOTHER_FOLDER = "give another folder with --investigation DIR"

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds it: end that program (`fuser` names it) and run again",
    sqlite3.SQLITE_LOCKED: "another process holds it: end that program (`fuser` names it) and run again",
    sqlite3.SQLITE_READONLY: f"it or its folder cannot be written: check permissions, or {ANOTHER_FOLDER}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened: check permissions, or {ANOTHER_FOLDER}",
    sqlite3.SQLITE_PERM: f"it cannot be opened: check permissions, or {ANOTHER_FOLDER}",
    sqlite3.SQLITE_FULL: "no space left: free some and run again; what was recorded before is kept",
    sqlite3.SQLITE_IOERR: "the disk failed: check it and its quota; what was recorded before is kept",
    sqlite3.SQLITE_NOTADB: f"it is no SQLite database: move it away, or {ANOTHER_FOLDER}",
    sqlite3.SQLITE_CORRUPT: "it is damaged: save what `sqlite3 FILE .recover` still reads, and move it away",
}
"""What to do about each error that lies in the file or the disk (sqlite.org/rescode.html). All others are
faults of perfkit and pass through."""


@dataclass(frozen=True, slots=True)
class TableContent:
    """A table or view: its columns in order, their declared types (`` where none is), its rows."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


class SharedDatabase:
    """An open investigation.db; `tables` is its sqlite-utils view."""

    def __init__(self, path: Path, journal: Journal, patience_s: float = PATIENCE_S) -> None:
        self.path = path
        self._patience_s = patience_s
        with explained(path):
            self.tables = _connect(path, patience_s)
            try:
                self._prepare(journal)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        self.tables.close()

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """All or nothing: commits at the end of the block, rolls back whatever ends it early."""
        with explained(self.path):
            patiently(lambda: self.tables.execute("BEGIN IMMEDIATE"), self._patience_s)
            try:
                yield self.tables
                self.tables.execute("COMMIT")
            except BaseException:
                self.tables.rollback()
                raise

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """All rows that a SELECT gives."""
        with explained(self.path):
            return list(self.tables.query(sql, parameters))

    def contents(self) -> Iterator[TableContent]:
        """Every table and view with its rows, which are read as they are asked for; take one at a time."""
        wanted = "type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        for row in self.query(f"SELECT name FROM sqlite_master WHERE {wanted} ORDER BY type, name"):
            name = row["name"]
            columns = self.query("SELECT name, type FROM pragma_table_info(?)", (name,))
            names = tuple(column["name"] for column in columns)
            types = tuple(column["type"].upper() for column in columns)
            yield TableContent(name, names, types, self._rows(name))

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        with explained(self.path):
            yield from self.tables.execute(f'SELECT * FROM "{table}"')

    def _prepare(self, journal: Journal) -> None:
        patiently(lambda: refuse_foreign(self.path, self.tables), self._patience_s)
        self.tables.execute("PRAGMA foreign_keys = ON")
        self.tables.execute("PRAGMA synchronous = FULL")
        if self.tables.journal_mode != journal:
            patiently(lambda: self.tables.execute(f"PRAGMA journal_mode = {journal}"), self._patience_s)
        if version_of(self.tables) < VERSION:
            with self.transaction():
                bring_up_to(self.tables)


def create_database(path: Path) -> None:
    """Make an empty investigation.db, whole from the moment it appears; whoever is first wins.

    It is built under another name and linked into place, so that a killed process leaves no half-made file.
    """
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        _build(beside)
        try:
            path.hardlink_to(beside)
        except FileExistsError:  # another process was first, and its file is as good
            return
        except OSError:  # a file system without hard links
            _copy_new(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def refuse_foreign(path: Path, database: Database) -> None:
    """Raise StoreError unless this perfkit can read the file; SQLite raises where it is no database."""
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path}: perfkit did not make this database: move it away, or {ANOTHER_FOLDER}")
    version = version_of(database)
    if version > VERSION:
        made_by = f"a newer perfkit made it (version {version}, this one knows up to {VERSION})"
        raise StoreError(f"{path}: {made_by}: update perfkit, or {ANOTHER_FOLDER}")
    if version < 1:
        said = f"it says version {version}, and none that perfkit makes is below 1: it was altered"
        raise StoreError(f"{path}: {said}: restore it from a copy, or {ANOTHER_FOLDER}")
    if lacking := sorted(_columns_at(version) - columns_of(database)):
        what = first_few(f"{table}.{column}" for table, column in lacking)
        raise StoreError(f"{path}: it lacks {what}: restore it from a copy, or {ANOTHER_FOLDER}")


def _columns_at(version: int) -> set[tuple[str, str]]:
    """Table and column of everything that a file of this version has."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        made = _tables(connection)
        bring_up_to(made, version)
        return columns_of(made)
    finally:
        connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error that lies in the file or the disk into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        advice = ADVICE.get(_code(error))
        if advice is None:
            raise
        raise StoreError(f"{path}: {advice} ({error})") from error


def patiently(action: Callable[[], T], patience_s: float) -> T:
    """Repeat an action while another process holds the file, with growing pauses of random length.

    SQLite waits by itself for most locks (its busy timeout), but not where it fears a deadlock, nor for a
    change of journal.
    """
    deadline_s = time.monotonic() + patience_s
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if _code(error) not in BUSY or time.monotonic() >= deadline_s:
                raise
        time.sleep(random.uniform(0, pause_s))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _connect(path: Path, patience_s: float) -> Database:
    """Open an existing file; transactions are ours to begin."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=patience_s, isolation_level=None)
    return _tables(connection)


def _tables(connection: sqlite3.Connection) -> Database:
    """The connection as sqlite-utils has it, without plugins that happen to be installed."""
    with _no_pandas():
        from sqlite_utils import Database

    return Database(connection, recursive_triggers=False, execute_plugins=False)


@contextmanager
def _no_pandas() -> Iterator[None]:
    """Let sqlite-utils be imported without pandas, which it only has for type names (0.2 s and 50 MB)."""
    missing = "pandas" not in sys.modules
    if missing:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # importing it now raises ImportError
    try:
        yield
    finally:
        if missing:
            del sys.modules["pandas"]


def _build(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        bring_up_to(_tables(connection))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _copy_new(source: Path, target: Path) -> None:
    content = source.read_bytes()
    try:
        with target.open("xb") as file:
            file.write(content)
    except FileExistsError:  # another process was first, and its file is as good
        return


def _code(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of the extended one."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
