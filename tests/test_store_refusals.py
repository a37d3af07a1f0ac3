"""What cannot be an investigation is refused in one line that names the file, and is left as it was."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlite_utils import Database

from layers.evidence.result import to_document
from layers.evidence.store import Investigation
from layers.evidence.store_database import patiently
from layers.evidence.store_schema import RESULTS, STEPS, VERSION, bring_up_to, version_of
from parsers.errors import StoreError
from tests.evidence_builders import ARGUMENTS, ENDED, RESULT, STARTED, tables_file

NO_PATIENCE_S = 0.05


def record(investigation: Investigation) -> int:
    return investigation.record(RESULT, ARGUMENTS, STARTED, ENDED)


def assert_refused(folder: Path, *words: str) -> None:
    """Opening fails in one line with these words and the file's name."""
    with pytest.raises(StoreError) as refusal:
        Investigation.open(folder, patience_s=NO_PATIENCE_S)
    message = str(refusal.value)
    assert "\n" not in message
    assert all(word in message for word in (str(folder), *words)), message


def place(folder: Path, content: bytes) -> None:
    """Put something else where the database would be."""
    folder.mkdir()
    tables_file(folder).write_bytes(content)


@contextmanager
def made_database(folder: Path) -> Iterator[Database]:
    """A database where the investigation's would be, to be filled by the test."""
    folder.mkdir()
    with closing(sqlite3.connect(tables_file(folder), isolation_level=None)) as connection:
        yield Database(connection)


@pytest.mark.parametrize("content", [b"hello\n" * 200, b"\x1f\x8b" + bytes(500)])
def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "investigation"
    place(folder, content)
    assert_refused(folder, "investigation.db", "no SQLite database", "--investigation")
    assert tables_file(folder).read_bytes() == content


def test_an_empty_file_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    place(folder, b"")
    assert_refused(folder, "0 bytes", "move it away")
    assert tables_file(folder).read_bytes() == b""


def test_a_database_of_another_program_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with made_database(folder) as database:
        database.execute("CREATE TABLE runs (mine TEXT)")
    before = tables_file(folder).read_bytes()
    assert_refused(folder, "perfkit did not make", "--investigation")
    assert tables_file(folder).read_bytes() == before


def test_a_newer_investigation_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with made_database(folder) as database:
        bring_up_to(database)
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = tables_file(folder).read_bytes()
    assert_refused(folder, f"version {VERSION + 1}", "update perfkit")
    assert tables_file(folder).read_bytes() == before


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with Investigation.open(folder) as investigation:
        record(investigation)
    content = bytearray(tables_file(folder).read_bytes())
    content[100:3000] = b"\xff" * 2900
    tables_file(folder).write_bytes(content)
    assert_refused(folder, "damaged", ".recover")


def test_a_database_that_another_program_locked_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    Investigation.open(folder).close()
    with closing(sqlite3.connect(tables_file(folder), isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert_refused(folder, "another process", "run again")


def test_a_writer_that_never_ends_is_waited_for_and_then_named(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with Investigation.open(folder, patience_s=NO_PATIENCE_S) as investigation:
        first = record(investigation)
        with closing(sqlite3.connect(tables_file(folder), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another process"):
                record(investigation)
        second = record(investigation)
        assert [run.id for run in investigation.runs()] == [first, second]


def test_a_full_disk_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    """SQLite reports its page limit with the same code as a disk without space."""
    with Investigation.open(tmp_path / "investigation") as investigation:
        recorded = [record(investigation)]
        tables = investigation._database.tables
        pages = tables.execute("PRAGMA page_count").fetchone()[0]
        tables.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="no space left"):
            recorded.extend(record(investigation) for _ in range(100))
        assert [run.id for run in investigation.runs()][: len(recorded)] == recorded
        assert [row[0] for row in tables.execute("PRAGMA integrity_check")] == ["ok"]


def test_a_database_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with Investigation.open(tmp_path / "investigation") as investigation:
        investigation._database.tables.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written"):
            record(investigation)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    assert_refused(tmp_path / "investigation", "Permission denied", "--investigation")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert_refused(tmp_path / "file", "check the folder")
    assert_refused(tmp_path / "file" / "investigation", "check the folder")


def test_an_older_investigation_is_brought_up_without_losing_rows(tmp_path: Path) -> None:
    folder = tmp_path / "older"
    with Investigation.open(tmp_path / "current") as current, made_database(folder) as older:
        record(current)
        bring_up_to(older, version=1)
        for table in older.tables:
            columns = ", ".join(column.name for column in table.columns)
            table.insert_all(current._database.query(f"SELECT {columns} FROM {table.name}"))
    with Investigation.open(folder) as migrated:
        assert [run.document for run in migrated.runs()] == [to_document(RESULT)]
        assert [stored.finding for stored in migrated.findings()] == RESULT.findings
        assert version_of(migrated._database.tables) == VERSION
        assert record(migrated) == 2


def test_steps_lead_through_every_version(tmp_path: Path) -> None:
    assert STEPS[0] is RESULTS and len(STEPS) == VERSION
    stepwise, at_once = Database(memory=True), Database(memory=True)
    for version in range(1, VERSION + 1):
        bring_up_to(stepwise, version)
    bring_up_to(at_once)
    assert stepwise.schema == at_once.schema


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_perfkit_never_writes_is_refused_and_kept(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "investigation"
    with made_database(folder) as database:
        bring_up_to(database)
        database.execute(f"PRAGMA user_version = {version}")
    before = tables_file(folder).read_bytes()
    assert_refused(folder, f"version {version}", "altered")
    assert tables_file(folder).read_bytes() == before


@pytest.mark.parametrize("version", [1, VERSION])
@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ("DROP TABLE guards", "guards.code"),
        ("DROP VIEW measurement_details", "measurement_details"),
        ("ALTER TABLE runs RENAME COLUMN because TO why", "runs.because"),
    ],
)
def test_tables_that_were_taken_out_are_named_and_never_made_anew(
    tmp_path: Path, version: int, change: str, lacking: str
) -> None:
    folder = tmp_path / "investigation"
    with made_database(folder) as database:
        bring_up_to(database, version)
        database.execute(change)
    before = tables_file(folder).read_bytes()
    assert_refused(folder, f"it lacks {lacking}")
    assert tables_file(folder).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("UPDATE documents SET document = '{'", "runs"),
        ("UPDATE documents SET document = '[1]'", "runs"),
        ("UPDATE documents SET document = '{\"verdict\": {}}'", "runs"),
        ("UPDATE documents SET document = json_set(document, '$.guards[0]', 7)", "runs"),
        ("UPDATE runs SET started_at = 'yesterday'", "runs"),
        ("UPDATE runs SET arguments = '7'", "runs"),
        ("UPDATE guards SET effect = 'loud'", "guards"),
        ("UPDATE findings SET strength = 'utter'", "findings"),
        ("UPDATE measurements SET raw_values = 'many'", "measurements"),
    ],
)
def test_a_row_that_was_altered_is_named(tmp_path: Path, change: str, table: str) -> None:
    with Investigation.open(tmp_path / "investigation") as investigation:
        record(investigation)
        investigation._database.tables.execute(change)
        with pytest.raises(StoreError, match=f"row 1 of {table} is not what perfkit wrote there"):
            getattr(investigation, table)()


def busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def test_a_busy_file_is_tried_again_until_it_is_free() -> None:
    outcomes = iter([busy(), busy(), None])

    def action() -> str:
        if (error := next(outcomes)) is not None:
            raise error
        return "done"

    assert patiently(action, patience_s=60) == "done"


def test_other_errors_are_not_tried_again() -> None:
    errors = iter([sqlite3.OperationalError("no such table"), busy()])

    def action() -> None:
        raise next(errors)

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        patiently(action, patience_s=60)
