"""An investigation gives back what was recorded, and a stranger with sqlite3 finds their way in it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layers.evidence import file_system
from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result, to_document
from layers.evidence.store import Investigation
from parsers.errors import StoreError, UnreadableInput
from tests.evidence_builders import (
    ARGUMENTS,
    BUSY,
    ENDED,
    IN_WORDS,
    RESULT,
    STARTED,
    TRACE,
    UTIL,
    tables_file,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "investigation"


def record(folder: Path, result: Result = RESULT, artifacts: tuple[Artifact, ...] = ()) -> int:
    with Investigation.open(folder) as investigation:
        return investigation.record(result, ARGUMENTS, STARTED, ENDED, artifacts)


def rows(folder: Path, sql: str) -> list[dict[str, Any]]:
    """What plain sqlite3 shows."""
    connection = sqlite3.connect(tables_file(folder))
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute(sql)]
    connection.close()
    return found


def test_everything_that_was_recorded_is_read_back(folder: Path) -> None:
    run_id = record(folder)
    with Investigation.open(folder, create=False) as investigation:
        (run,) = investigation.runs()
        assert run.id == run_id
        assert run.document == to_document(RESULT)
        assert (run.call.arguments, run.call.started, run.call.ended) == (ARGUMENTS, STARTED, ENDED)
        assert [m.measurement for m in investigation.measurements()] == [BUSY, UTIL]
        assert [g.checked for g in investigation.guards()] == RESULT.guards
        assert [f.finding for f in investigation.findings()] == RESULT.findings
        assert {m.run_id for m in investigation.measurements()} == {run_id}


def test_later_runs_are_appended_to_earlier_ones(folder: Path) -> None:
    first, second = record(folder), record(folder, replace(RESULT, command="layer2"))
    with Investigation.open(folder) as investigation:
        assert [(r.id, r.document["command"]) for r in investigation.runs()] == [
            (first, "layer1"),
            (second, "layer2"),
        ]
        assert [f.run_id for f in investigation.findings()] == [first, first, second, second]


def test_one_view_leads_from_a_number_to_its_command_and_its_artifact(folder: Path) -> None:
    record(folder)
    (row, _) = rows(folder, "SELECT * FROM measurement_details")
    assert row["command_line"] == "perfkit layer1 --trace 'a trace.json'"
    assert (row["started_at"], row["ended_at"]) == (
        "2026-08-05T10:00:00.000000+00:00",
        "2026-08-05T10:00:25.500000+00:00",
    )
    assert (row["artifact_path"], row["artifact_sha256"], row["artifact_size_bytes"]) == (
        TRACE.path,
        TRACE.sha256,
        TRACE.size_bytes,
    )
    assert (row["value"], row["unit"], row["n"], row["n_unit"]) == (0.079, "share", 61, "operations")
    assert row["raw_values"] == "[0.08, 0.078]"


def test_one_view_shows_a_finding_with_its_numbers(folder: Path) -> None:
    record(folder)
    first, negative = rows(folder, "SELECT * FROM finding_details")
    assert first["evidence"] == (
        "busy ratio GPU 0 = 0.079 share (n = 61 operations); NVML util = 55.0 % (n = 21 samples)"
    )
    assert (negative["negative"], negative["evidence"]) == (1, None)


def test_evidence_in_words_is_kept_with_the_files_that_it_was_read_from(folder: Path) -> None:
    record(folder, replace(RESULT, findings=[IN_WORDS]))
    with Investigation.open(folder) as investigation:
        assert [f.finding for f in investigation.findings()] == [IN_WORDS]
    (shown,) = rows(folder, "SELECT * FROM finding_details")
    assert (shown["scope"], shown["evidence"]) == (IN_WORDS.scope, IN_WORDS.evidence)
    used = rows(folder, "SELECT path FROM run_artifacts JOIN artifacts ON id = artifact_id")
    assert {row["path"] for row in used} == {artifact.path for artifact in IN_WORDS.artifacts}


def test_every_row_hangs_on_its_run_by_a_foreign_key(folder: Path) -> None:
    record(folder)
    for table in ("documents", "measurements", "guards", "findings", "run_artifacts"):
        keys = rows(folder, f"PRAGMA foreign_key_list({table})")
        assert ("runs", "run_id") in [(key["table"], key["from"]) for key in keys]
    assert rows(folder, "PRAGMA foreign_key_check") == []


def test_artifacts_are_listed_once_with_all_runs_that_used_them(folder: Path) -> None:
    log = Artifact("/logs/server.log", "cd" * 32, 10)
    first, second = record(folder, artifacts=(log, TRACE)), record(folder)
    assert [row["path"] for row in rows(folder, "SELECT path FROM artifacts ORDER BY id")] == [
        TRACE.path,
        log.path,
    ]
    used = rows(folder, "SELECT run_id, path FROM run_artifacts JOIN artifacts ON id = artifact_id")
    assert sorted((row["run_id"], row["path"]) for row in used) == [
        (first, log.path),
        (first, TRACE.path),
        (second, TRACE.path),
    ]


def test_artifacts_of_perfkit_are_found_after_the_folder_moved(folder: Path, tmp_path: Path) -> None:
    with Investigation.open(folder) as investigation:
        path = investigation.new_artifact("stacks.raw")
        path.write_text("main;forward 12\n")
        measurement = replace(UTIL, artifact=describe_artifact(path))
        investigation.record(replace(RESULT, measurements=[measurement]), ARGUMENTS, STARTED, ENDED)
    moved = folder.rename(tmp_path / "elsewhere")
    with Investigation.open(moved) as investigation:
        artifact = investigation.measurements()[0].measurement.artifact
        assert artifact is not None and artifact.path == "artifacts/stacks.raw"
        assert describe_artifact(investigation.locate(artifact)).sha256 == artifact.sha256


def test_files_of_the_user_are_named_by_absolute_path(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(folder, replace(RESULT, measurements=[replace(UTIL, artifact=replace(TRACE, path="t.json"))]))
    assert {"path": str(tmp_path / "t.json")} in rows(folder, "SELECT path FROM artifacts")


def test_new_artifacts_never_take_the_place_of_older_ones(folder: Path) -> None:
    with Investigation.open(folder) as investigation:
        paths = [investigation.new_artifact(name) for name in ("a.raw", "a.raw", "../a.raw", "b.raw")]
    assert [path.relative_to(folder / "artifacts").as_posix() for path in paths] == [
        "a.raw",
        "a-2.raw",
        "a-3.raw",
        "b.raw",
    ]
    assert all(path.exists() for path in paths)


def test_numpy_numbers_are_stored_as_numbers(folder: Path) -> None:
    value: Any = np.float32(1.5)
    n: Any = np.int64(3)
    measured = Measurement("x", value, "ms", n, "steps", "trace")
    record(folder, replace(RESULT, measurements=[measured]))
    (row,) = rows(folder, "SELECT typeof(value) AS v, typeof(n) AS n FROM measurements WHERE name = 'x'")
    assert row == {"v": "real", "n": "integer"}


def test_names_that_are_not_unicode_are_stored_as_their_escape(folder: Path) -> None:
    odd = replace(UTIL, artifact=replace(TRACE, path="/traces/\udcff.json"))
    with Investigation.open(folder) as investigation:
        arguments = ("perfkit", "\udcff.json")
        investigation.record(replace(RESULT, measurements=[odd]), arguments, STARTED, ENDED)
        assert investigation.runs()[0].call.arguments == arguments
    assert {"path": "/traces/\\udcff.json"} in rows(folder, "SELECT path FROM artifacts")


def test_a_result_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    record(folder)
    with pytest.raises(ValueError, match="Out of range float"):
        record(folder, replace(RESULT, sections={"devices": [float("nan")]}))
    assert [len(rows(folder, f"SELECT * FROM {table}")) for table in ("runs", "measurements")] == [1, 2]


def test_a_folder_that_holds_other_files_is_fine_and_they_stay(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    record(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"artifacts", "figures", "investigation.db", "notes.txt"}
    assert (folder / "notes.txt").read_text() == "mine"


def test_an_investigation_that_is_only_read_must_be_there(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"no investigation\.db"):
        Investigation.open(folder, create=False)
    assert not folder.exists()


def journal_of(folder: Path) -> str:
    (row,) = rows(folder, "PRAGMA journal_mode")
    return str(row["journal_mode"])


def test_the_journal_follows_the_folder_to_another_file_system(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    monkeypatch.setattr(file_system, "MOUNT_TABLE", table)
    for kind, journal in [("ext4", "wal"), ("nfs4", "delete"), ("xfs", "wal")]:
        table.write_text(f"22 1 254:0 / / rw - {kind} source rw\n")
        record(folder)
        assert journal_of(folder) == journal
    assert len(rows(folder, "SELECT * FROM runs")) == 3


def test_an_artifact_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"abc")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert describe_artifact(path) == Artifact(str(path), sha256, 3)
    with pytest.raises(UnreadableInput, match=r"absent\.json"):
        describe_artifact(tmp_path / "absent.json")
