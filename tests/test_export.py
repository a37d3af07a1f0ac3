"""`perfkit export`: every table of an investigation as CSV or Parquet, with the same rows."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest

from layers.evidence import export
from layers.evidence.store import Investigation
from tests.command_runs import run
from tests.evidence_builders import ARGUMENTS, BUSY, ENDED, RESULT, STARTED, tables_file

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    where = tmp_path / "investigation"
    with Investigation.open(where) as investigation:
        for _ in range(3):
            investigation.record(RESULT, ARGUMENTS, STARTED, ENDED)
    return where


def named(folder: Path) -> set[str]:
    connection = sqlite3.connect(tables_file(folder))
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type != 'index'")}
    connection.close()
    return {name for name in names if not name.startswith("sqlite_")}


def test_every_table_and_view_is_a_file_of_its_rows(
    folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 2)
    out = tmp_path / "out"
    code, said, _ = run(capsys, "export", "--investigation", str(folder), "--output", str(out), "--json")
    assert code == 0
    assert {file["table"] for file in json.loads(said)["files"]} == named(folder)
    assert {path.stem for path in out.iterdir()} == named(folder)
    with (out / "measurements.csv").open(newline="") as file:
        measurements = list(csv.DictReader(file))
    assert len(measurements) == 3 * 2
    assert [m["value"] for m in measurements if m["name"] == BUSY.name] == [repr(BUSY.value)] * 3
    assert {m["artifact_id"] for m in measurements} > {""}


def test_parquet_keeps_types_and_nulls(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    code, said, _ = run(capsys, "export", "--parquet", "--investigation", str(folder), "--output", str(out))
    assert (code, "measurements.parquet" in said) == (0, True)
    table = parquet.read_table(out / "measurements.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["id"], types["value"], types["unit"]) == ("int64", "double", "string")
    rows = table.to_pylist()
    assert [m["value"] for m in rows if m["name"] == BUSY.name] == [BUSY.value] * 3
    assert None in {m["artifact_id"] for m in rows}
    details = parquet.read_table(out / "finding_details.parquet").to_pylist()
    assert len(details) == 3 * len(RESULT.findings)


def test_nothing_is_written_over(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "runs.csv").write_text("mine")
    code, _, said = run(capsys, "export", "--investigation", str(folder), "--output", str(tmp_path))
    assert (code, "nothing is written over" in said) == (2, True)
    assert (tmp_path / "runs.csv").read_text() == "mine"


def test_parquet_without_pyarrow_says_what_to_install(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    code, _, said = run(capsys, "export", "--parquet", "--investigation", str(folder))
    assert (code, "pip install 'perfkit[export]'" in said) == (2, True)
    assert not (folder / "tables").exists()


def test_no_investigation_is_no_export(tmp_path: Path, capsys: Captured) -> None:
    code, _, said = run(capsys, "export", "--investigation", str(tmp_path / "none"))
    assert (code, "none" in said) == (4, True)
