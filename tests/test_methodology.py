"""`perfkit methodology` and `perfkit pitfall`: what the program checks, in words, and what people add."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from layers.catalogue import CATALOGUE, SYMPTOMS
from layers.evidence.pitfalls import Pitfall, add, default_file, read
from layers.evidence.record_log import RecordLog
from layers.evidence.strength_table import TABLE
from layers.evidence.verdict import Exit
from parsers.errors import StoreError
from parsers.loss import Loss
from reports.layers_walked import KNOWN
from reports.methodology import edition, render
from tests.command_runs import run

Captured = pytest.CaptureFixture[str]

MET = Pitfall(
    "A p99 that <b>halved</b>", "It came of *50* requests.", "n below 368", "run 7", "PK105", date(2026, 2, 3)
)
ADD = ("pitfall", "add", "--sees", MET.sees, "--happened", MET.happened, "--detect", MET.detection)


def test_the_document_has_every_guard_layer_symptom_exit_code_and_row_of_the_table() -> None:
    text = render(CATALOGUE, SYMPTOMS, (), "1.2.3")
    for guard in CATALOGUE:
        assert f"\n### {guard.code} {guard.name}\n" in text
    for layer in KNOWN:
        assert f"`perfkit {layer.command}`" in text
    assert all(f"| {s.code} |" in text for s in SYMPTOMS)
    assert all(row.measurement.split(",")[0] in text for row in TABLE)
    assert all(f"\n| {int(code)} | {code.meaning} |\n" in text for code in Exit)
    assert "perfkit 1.2.3, edition " in text


def test_every_guard_belongs_to_a_layer_of_the_document() -> None:
    text = render(CATALOGUE, SYMPTOMS, (), "1")
    assert text.count("\n**What you see.**") == len(CATALOGUE)


def test_the_edition_changes_with_what_is_checked_and_only_then() -> None:
    now = edition(CATALOGUE, SYMPTOMS)
    assert now == edition(list(CATALOGUE), list(SYMPTOMS))
    assert now != edition([replace(CATALOGUE[0], remedy="Pray."), *CATALOGUE[1:]], SYMPTOMS)
    assert now != edition(CATALOGUE, SYMPTOMS[1:])


def test_a_pitfall_is_written_down_listed_and_part_of_the_document(tmp_path: Path, capsys: Captured) -> None:
    file = str(tmp_path / "new" / "pitfalls.log")
    code, out, _ = run(capsys, *ADD, "--source", MET.source, "--guard", "few-samples", "--file", file)
    assert (code, file in out) == (0, True)
    code, out, _ = run(capsys, "pitfall", "list", "--file", file, "--json")
    (listed,) = json.loads(out)["pitfalls"]
    assert listed == {
        "sees": MET.sees,
        "happened": MET.happened,
        "detection": MET.detection,
        "source": MET.source,
        "guard": "PK105",
        "added": date.today().isoformat(),
    }
    code, out, _ = run(capsys, "methodology", "--file", file)
    assert "\n### Pitfall 1. A p99 that \\<b>halved\\</b>\n" in out
    assert "It came of \\*50\\* requests." in out
    assert "PK105 checks it." in out


def test_a_pitfall_needs_all_its_parts_and_a_guard_that_exists(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "pitfalls.log"
    code, _, said = run(capsys, *ADD, "--source", "  ", "--file", str(file))
    assert (code, "--source says nothing" in said) == (2, True)
    code, _, said = run(capsys, *ADD, "--source", "x", "--guard", "few-sample", "--file", str(file))
    assert (code, "did you mean PK105 few-samples" in said) == (2, True)
    assert not file.exists()


def test_no_pitfalls_are_no_fault(tmp_path: Path, capsys: Captured) -> None:
    code, out, said = run(capsys, "pitfall", "list", "--file", str(tmp_path / "none.log"))
    assert (code, said) == (0, "")
    assert "perfkit pitfall add" in out
    assert "None. `perfkit pitfall add`" in render(CATALOGUE, SYMPTOMS, (), "1")


def test_damaged_lines_and_other_records_are_told_and_the_rest_is_kept(
    tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "pitfalls.log"
    add(file, MET)
    with file.open("ab") as log:
        log.write(b"00000000 {}\n")
    with RecordLog(file) as records:
        records.append({"sees": 3})
    add(file, replace(MET, guard=""))
    losses: list[Loss] = []
    assert read(file, losses) == (MET, replace(MET, guard=""))
    assert [loss.what.split(":")[0] for loss in losses] == [
        "line 2 does not match its checksum",
        "line 3 is no pitfall",
    ]
    code, out, said = run(capsys, "pitfall", "list", "--file", str(file))
    assert (code, "line 2" in said, "by no guard: watch for it" in out) == (0, True, True)


def test_the_file_of_a_user_follows_the_xdg_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_file() == tmp_path / "perfkit" / "pitfalls.log"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_file() == tmp_path / ".local" / "share" / "perfkit" / "pitfalls.log"


def test_a_file_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="name another place with --file"):
        add(tmp_path / "taken" / "pitfalls.log", MET)
