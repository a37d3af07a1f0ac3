"""The investigation: a folder that keeps what was measured, by which command, from which bytes.

    investigation.db   runs with their measurements, guards and findings (tables: store_schema.py)
    artifacts/         raw files that perfkit made, never edited
    figures/           drawings of the report

Files that the user gave are referenced where they lie, by path, size and sha256. Several processes may record
to one investigation at once; what `record` returned for is on the disk and stays, whatever happens next.
perfkit deletes nothing in the folder, and other files in it do no harm. A folder that cannot be used is a
StoreError that says what to do.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from layers.evidence.file_system import journal_for
from layers.evidence.measurement import Artifact
from layers.evidence.record_log import NumberedRecord, read_records
from layers.evidence.result import Result
from layers.evidence.secrets import masked_arguments
from layers.evidence.store_database import (
    ANOTHER_FOLDER,
    PATIENCE_S,
    SharedDatabase,
    TableContent,
    create_database,
    explained,
)
from layers.evidence.store_rows import (
    Call,
    ResultWriter,
    Row,
    Run,
    StoredFinding,
    StoredGuard,
    StoredMeasurement,
    read_artifact,
    read_finding,
    read_guard,
    read_measurement,
    read_run,
)
from parsers.errors import StoreError
from parsers.loss import Loss

T = TypeVar("T")

DATABASE = "investigation.db"
ARTIFACTS = "artifacts"
FIGURES = "figures"

RECORDS_PER_TRANSACTION = 1000
"""Keeps an ingestion from holding the file for more than some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came of reading a record log into the store: new records, and what could not be read."""

    added: int
    losses: tuple[Loss, ...]


class Investigation:
    """An open investigation folder. Use as a context manager."""

    def __init__(self, folder: Path, database: SharedDatabase) -> None:
        self.folder = folder
        self._database = database

    @classmethod
    def open(cls, folder: Path, create: bool = True, patience_s: float = PATIENCE_S) -> Self:
        """Open the investigation in this folder, or begin one there; an older one is brought up to date.

        `patience_s` is how long to wait for other processes before giving up with a StoreError.
        """
        with _explained_folder(folder):
            database = _prepare_folder(folder, create)
        return cls(folder, SharedDatabase(database, journal_for(folder), patience_s))

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(
        self,
        result: Result,
        arguments: Sequence[str],
        started: datetime,
        ended: datetime,
        artifacts: Iterable[Artifact] = (),
    ) -> int:
        """Keep a result in one transaction and return the id of its run.

        `arguments` is the command, whose secrets are masked; `artifacts` are files that the run read or made
        beyond those that its measurements name.
        """
        call = Call(masked_arguments(arguments), os.getcwd(), platform.node(), started, ended)
        with self._database.transaction() as tables:
            return ResultWriter(tables, self._place).write(result, call, artifacts)

    def ingest(self, log: Path) -> Ingested:
        """Take in the records of a log (record_log.py) that are new here; repeating it adds nothing."""
        losses: list[Loss] = []
        records = read_records(log, losses)
        added = 0
        while batch := list(islice(records, RECORDS_PER_TRANSACTION)):
            added += self._ingest_batch(self._place(str(log)), batch)
        return Ingested(added, tuple(losses))

    def runs(self) -> list[Run]:
        """Every recorded command in the order of recording, with its whole document."""
        rows = self._database.query("SELECT * FROM runs JOIN documents ON run_id = id ORDER BY id")
        return [self._read(read_run, row, "runs") for row in rows]

    def measurements(self) -> list[StoredMeasurement]:
        """Every measurement in the order of recording."""
        rows = self._database.query("SELECT * FROM measurement_details ORDER BY id")
        return [self._read(read_measurement, row, "measurements") for row in rows]

    def guards(self) -> list[StoredGuard]:
        """Every guard that was checked, in the order of recording."""
        rows = self._database.query("SELECT * FROM guards ORDER BY id")
        return [self._read(read_guard, row, "guards") for row in rows]

    def findings(self) -> list[StoredFinding]:
        """Every finding in the order of recording, with what it rests on."""
        rows = self._database.query("SELECT * FROM findings ORDER BY id")
        measurement_ids = self._links("finding_measurements", "measurement_id")
        artifact_ids = self._links("finding_artifacts", "artifact_id")
        # Read last: another process may record meanwhile, and each link seen above must find its end.
        measured = {stored.id: stored.measurement for stored in self.measurements()}
        artifacts = {row["id"]: read_artifact(row) for row in self._database.query("SELECT * FROM artifacts")}

        def read(row: Row) -> StoredFinding:
            measurements = [measured[id] for id in measurement_ids.get(row["id"], [])]
            return read_finding(row, measurements, [artifacts[id] for id in artifact_ids.get(row["id"], [])])

        return [self._read(read, row, "findings") for row in rows]

    def tables(self) -> Iterator[TableContent]:
        """Every table and view as it stands in the file; take one at a time."""
        return self._database.contents()

    def new_artifact(self, name: str) -> Path:
        """Reserve an empty file in artifacts/ under this name, or name-2, name-3, ... where it is taken."""
        path = wanted = self.folder / ARTIFACTS / Path(name).name
        number = 1
        with _explained_folder(self.folder):
            while not _reserve(path):
                number += 1
                path = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
        return path

    def locate(self, artifact: Artifact) -> Path:
        """Where an artifact that was read back lies now."""
        return self.folder / artifact.path

    def _read(self, read: Callable[[Row], T], row: Row, table: str) -> T:
        """A row as a record; StoreError where somebody altered it, or it is damaged."""
        try:
            return read(row)
        except (ValueError, TypeError, KeyError) as error:
            what = f"row {row['id']} of {table} is not what perfkit wrote there ({error})"
            advice = "restore the file from a copy, or move it away"
            raise StoreError(f"{self._database.path}: {what}: {advice}") from error

    def _links(self, table: str, column: str) -> dict[int, list[int]]:
        """What a table of links ties to each finding, in the order of recording."""
        links: dict[int, list[int]] = {}
        for row in self._database.query(f"SELECT * FROM {table} ORDER BY rowid"):
            links.setdefault(row["finding_id"], []).append(row[column])
        return links

    def _place(self, path: str) -> str:
        """How a path is stored: inside the folder from there on, since the folder may move; else absolute."""
        absolute, folder = Path(os.path.abspath(path)), Path(os.path.abspath(self.folder))
        return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)

    def _ingest_batch(self, file: str, batch: Sequence[NumberedRecord]) -> int:
        """Add the records whose lines are new; a known line that holds another record now is refused."""
        rows = [{"file": file, "line": line, "record": json.dumps(record)} for line, record in batch]
        with self._database.transaction() as tables:
            known = self._known_records(file, batch[0].line, batch[-1].line)
            for row in rows:
                if known.get(row["line"], row["record"]) != row["record"]:
                    what = f"line {row['line']} is not what was read before: the file was replaced"
                    raise StoreError(f"{file}: {what}: give the new one another name")
            new = [row for row in rows if row["line"] not in known]
            tables.table("request_records").insert_all(new)
        return len(new)

    def _known_records(self, file: str, first_line: int, last_line: int) -> dict[Any, str]:
        where = "file = ? AND line BETWEEN ? AND ?"
        sql = f"SELECT line, record FROM request_records WHERE {where}"
        rows = self._database.query(sql, (file, first_line, last_line))
        return {row["line"]: row["record"] for row in rows}


def _prepare_folder(folder: Path, create: bool) -> Path:
    """The path of the folder's database, which exists and is not empty when this returns."""
    database = folder / DATABASE
    if not create and not database.exists():
        raise StoreError(f"{folder}: no {DATABASE} in it: check --investigation, or measure something first")
    (folder / ARTIFACTS).mkdir(parents=True, exist_ok=True)
    (folder / FIGURES).mkdir(exist_ok=True)
    if not database.exists():
        with explained(database):
            create_database(database)
    if not database.is_file():
        raise StoreError(f"{database}: is no file: move it away, or {ANOTHER_FOLDER}")
    if database.stat().st_size == 0:
        what = "is empty (0 bytes), so whatever it held is lost"
        raise StoreError(f"{database}: {what}: move it away, or {ANOTHER_FOLDER}")
    return database


@contextmanager
def _explained_folder(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = f"check the folder and its permissions, or {ANOTHER_FOLDER}"
        raise StoreError(f"{folder}: {error.strerror or error}: {advice}") from error


def _reserve(path: Path) -> bool:
    """Make an empty file unless there is one; whether this call made it."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
