"""The tables of investigation.db, and how older files are brought up to them.

The file is meant to be read with plain sqlite3 or Datasette as well: names are words, every row hangs on its
run by a foreign key, and two views put a measurement or a finding beside the command that made it. A perfkit
file is known by SQLite's application_id; its user_version is the number of STEPS that it went through. A
released step is never edited: a change of the tables is a new step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = int.from_bytes(b"PFKT", "big")
"""Marks a file as perfkit's own (sqlite.org/pragma.html#pragma_application_id)."""

RESULTS = (
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        command TEXT NOT NULL,
        verdict TEXT NOT NULL,
        directional INTEGER NOT NULL,
        because TEXT NOT NULL,
        next_step TEXT NOT NULL,
        exit_code INTEGER NOT NULL,
        command_line TEXT NOT NULL,
        arguments TEXT NOT NULL,
        working_folder TEXT NOT NULL,
        host TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT NOT NULL
    )""",
    """CREATE TABLE documents (
        run_id INTEGER PRIMARY KEY REFERENCES runs(id),
        document TEXT NOT NULL
    )""",
    """CREATE TABLE artifacts (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        UNIQUE (path, sha256, size_bytes)
    )""",
    """CREATE TABLE run_artifacts (
        run_id INTEGER NOT NULL REFERENCES runs(id),
        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
        PRIMARY KEY (run_id, artifact_id)
    )""",
    """CREATE TABLE measurements (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id),
        name TEXT NOT NULL,
        scope TEXT NOT NULL,
        value REAL NOT NULL,
        unit TEXT NOT NULL,
        n INTEGER NOT NULL,
        n_unit TEXT NOT NULL,
        method TEXT NOT NULL,
        raw_values TEXT NOT NULL,
        artifact_id INTEGER REFERENCES artifacts(id)
    )""",
    "CREATE INDEX measurements_of_run ON measurements (run_id)",
    """CREATE TABLE guards (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id),
        code TEXT NOT NULL,
        name TEXT NOT NULL,
        effect TEXT NOT NULL,
        fired INTEGER NOT NULL,
        message TEXT NOT NULL,
        scope TEXT NOT NULL
    )""",
    "CREATE INDEX guards_of_run ON guards (run_id)",
    """CREATE TABLE findings (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id),
        statement TEXT NOT NULL,
        strength TEXT NOT NULL,
        rule TEXT NOT NULL,
        recommendation TEXT NOT NULL,
        negative INTEGER NOT NULL,
        disproof TEXT NOT NULL
    )""",
    "CREATE INDEX findings_of_run ON findings (run_id)",
    """CREATE TABLE finding_measurements (
        finding_id INTEGER NOT NULL REFERENCES findings(id),
        measurement_id INTEGER NOT NULL REFERENCES measurements(id),
        PRIMARY KEY (finding_id, measurement_id)
    )""",
    """CREATE VIEW measurement_details AS
        SELECT m.id, m.name, m.scope, m.value, m.unit, m.n, m.n_unit, m.method, m.raw_values,
               a.path AS artifact_path, a.sha256 AS artifact_sha256, a.size_bytes AS artifact_size_bytes,
               r.id AS run_id, r.verdict, r.command_line, r.working_folder, r.host, r.started_at, r.ended_at
        FROM measurements m
        JOIN runs r ON r.id = m.run_id
        LEFT JOIN artifacts a ON a.id = m.artifact_id
        ORDER BY m.id""",
    """CREATE VIEW finding_details AS
        SELECT f.id, f.statement, f.strength, f.rule, f.recommendation, f.negative, f.disproof,
               (SELECT group_concat(trim(m.name || ' ' || m.scope) || ' = ' || m.value || ' ' || m.unit
                                    || ' (n = ' || m.n || ' ' || m.n_unit || ')', '; ')
                FROM finding_measurements fm JOIN measurements m ON m.id = fm.measurement_id
                WHERE fm.finding_id = f.id) AS evidence,
               r.id AS run_id, r.verdict, r.command_line, r.started_at, r.ended_at
        FROM findings f
        JOIN runs r ON r.id = f.run_id
        ORDER BY f.id""",
)

REQUEST_RECORDS = (
    """CREATE TABLE request_records (
        file TEXT NOT NULL,
        line INTEGER NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (file, line)
    )""",
)

EVIDENCE_IN_WORDS = (
    "ALTER TABLE findings ADD COLUMN evidence TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE findings ADD COLUMN scope TEXT NOT NULL DEFAULT ''",
    """CREATE TABLE finding_artifacts (
        finding_id INTEGER NOT NULL REFERENCES findings(id),
        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
        PRIMARY KEY (finding_id, artifact_id)
    )""",
    "DROP VIEW finding_details",
    """CREATE VIEW finding_details AS
        SELECT f.id, f.scope, f.statement, f.strength, f.rule, f.recommendation, f.negative, f.disproof,
               coalesce(
                   nullif(f.evidence, ''),
                   (SELECT group_concat(trim(m.name || ' ' || m.scope) || ' = ' || m.value || ' ' || m.unit
                                        || ' (n = ' || m.n || ' ' || m.n_unit || ')', '; ')
                    FROM finding_measurements fm JOIN measurements m ON m.id = fm.measurement_id
                    WHERE fm.finding_id = f.id)
               ) AS evidence,
               r.id AS run_id, r.verdict, r.command_line, r.started_at, r.ended_at
        FROM findings f
        JOIN runs r ON r.id = f.run_id
        ORDER BY f.id""",
)

FINDING_KINDS = (
    "ALTER TABLE findings ADD COLUMN kind TEXT NOT NULL DEFAULT 'observation'",
    """UPDATE findings SET kind = 'verdict' WHERE id IN (
        SELECT min(f.id) FROM findings f JOIN runs r ON r.id = f.run_id
        WHERE r.command = 'layer1' GROUP BY f.run_id, f.scope
    )""",
)
"""Until then the first finding of each device stood for its verdict."""

STEPS = (RESULTS, REQUEST_RECORDS, EVIDENCE_IN_WORDS, FINDING_KINDS)
"""Step k leads from version k to k + 1; version 0 is an empty file."""

VERSION = len(STEPS)


def version_of(database: Database) -> int:
    """How many steps the file went through."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def columns_of(database: Database) -> set[tuple[str, str]]:
    """Table and column of all that the file has; a view stands there with its name alone."""
    of_tables = """SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
                   WHERE m.type = 'table'"""
    views = "SELECT name, '' FROM sqlite_master WHERE type = 'view'"
    return set(database.execute(f"{of_tables} UNION ALL {views}").fetchall())


def bring_up_to(database: Database, version: int = VERSION) -> None:
    """Take every step that the file lacks, and mark it as perfkit's own; the caller holds a transaction."""
    for step in STEPS[version_of(database) : version]:
        for statement in step:
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {version}")
