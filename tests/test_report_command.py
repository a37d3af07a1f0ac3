"""`perfkit report`: where it writes, what it refuses to overwrite, what it prints."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit
from perfkit.cli.app import main
from perfkit.cli.registry import BY_NAME
from reports.layers_walked import KNOWN
from reports.markdown_report import render
from reports.report_file import MARK
from tests.conftest import REPOSITORY
from tests.report_builders import cpu_only_trace, host_bound_trace, record, report_of

Captured = pytest.CaptureFixture[str]

FIGURES = ["run1-busy.svg", "run1-idle.svg", "run1-kernels.svg", "run1-timeline.svg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    return tmp_path / "i"


def test_it_writes_report_and_figures_and_prints_verdict_and_place(folder: Path, capsys: Captured) -> None:
    assert main(["report", "--investigation", str(folder)]) == Exit.OK
    shown = capsys.readouterr().out
    assert shown.startswith("HOST-BOUND") and "(4 figures)" in shown
    assert "report.md" in shown.replace("\n", "")
    assert MARK.match((folder / "report.md").read_bytes())
    assert sorted(path.name for path in (folder / "figures").iterdir()) == FIGURES


def test_the_default_is_the_investigation_of_this_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    folder.rename(folder.parent / "perfkit-investigation")
    monkeypatch.chdir(folder.parent)
    assert main(["report"]) == Exit.OK
    assert "perfkit-investigation/report.md (4 figures)" in capsys.readouterr().out


def test_a_file_can_be_named_and_both_pages_are_told(folder: Path, capsys: Captured) -> None:
    page = folder.parent / "r.html"
    assert main(["report", str(page), "--investigation", str(folder), "--json"]) == Exit.OK
    written = json.loads(capsys.readouterr().out)["report"]
    assert (written["path"], written["html"]) == (str(page.with_suffix(".md")), str(page))
    assert page.exists() and page.with_suffix(".md").exists()
    assert main(["report", "--html", "--investigation", str(folder)]) == Exit.OK
    assert "report.md and " in " ".join(capsys.readouterr().out.split())
    assert main(["report", "a.md", "--output", "b.md", "--investigation", str(folder)]) == Exit.USAGE


def test_a_report_of_its_own_is_written_anew_and_is_the_same(folder: Path) -> None:
    assert main(["report", "--investigation", str(folder)]) == Exit.OK
    first = (folder / "report.md").read_bytes()
    assert main(["report", "--investigation", str(folder)]) == Exit.OK
    assert (folder / "report.md").read_bytes() == first
    assert [path.name for path in folder.iterdir() if path.name.startswith(".report")] == []


def test_a_file_of_somebody_else_is_left_alone(folder: Path, capsys: Captured) -> None:
    (folder / "report.md").write_text("my own notes")
    assert main(["report", "--investigation", str(folder)]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "perfkit did not write this file" in said and "--output FILE" in said and said.count("\n") == 1
    assert (folder / "report.md").read_text() == "my own notes"
    assert not list((folder / "figures").iterdir())


def test_a_report_that_was_edited_is_left_alone(folder: Path, capsys: Captured) -> None:
    assert main(["report", "--investigation", str(folder)]) == Exit.OK
    page = folder / "report.md"
    page.write_text(page.read_text() + "\nMy conclusion: buy more GPUs.\n")
    assert main(["report", "--investigation", str(folder)]) == Exit.INVALID
    assert "was edited since perfkit wrote it" in capsys.readouterr().err
    assert "buy more GPUs" in page.read_text()


def test_another_file_refers_to_the_figures_from_where_it_lies(folder: Path) -> None:
    page = folder.parent / "docs" / "a report.md"
    page.parent.mkdir()
    assert main(["report", "--investigation", str(folder), "--output", str(page)]) == Exit.OK
    assert "(../i/figures/run1-busy.svg)" in page.read_text()
    assert not (folder / "report.md").exists()


def test_without_figures_none_is_drawn(folder: Path) -> None:
    assert main(["report", "--investigation", str(folder), "--no-figures"]) == Exit.OK
    assert not list((folder / "figures").iterdir())
    assert "--no-figures" in (folder / "report.md").read_text()


def test_json_names_what_was_written_and_what_counts(folder: Path, capsys: Captured) -> None:
    record(folder, folder.parent / "t.json")
    assert main(["report", "--investigation", str(folder), "--json"]) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["word"] == "written"
    assert document["report"]["path"] == str(folder / "report.md") and len(document["report"]["figures"]) == 4
    assert [v["run"] for v in document["run_verdicts"]] == [2]
    assert [dropped["run"] for dropped in document["dropped_runs"]] == [1]
    assert document["findings"] and {(m["n"], m["n_unit"]) for m in document["measurements"]} == {
        (18, "device operations"),
        (17, "gaps"),
    }


def test_a_void_run_is_written_up_all_the_same(tmp_path: Path, capsys: Captured) -> None:
    record(tmp_path / "i", cpu_only_trace().write(tmp_path / "t.json"))
    assert main(["report", "--investigation", str(tmp_path / "i")]) == Exit.OK
    shown = capsys.readouterr().out
    assert shown.startswith("VOID") and "(0 figures)" in shown


def test_one_run_of_several_is_written_up_by_itself(folder: Path, capsys: Captured) -> None:
    run = record(folder, host_bound_trace(["gemm"]).write(folder.parent / "other.json"))
    page = folder.parent / "one.md"
    assert (
        main(["report", "--investigation", str(folder), "--run", str(run), "--output", str(page)]) == Exit.OK
    )
    assert "(4 figures)" in capsys.readouterr().out
    assert "# Findings: other.json" in page.read_text() and "t.json" not in page.read_text()


def test_a_run_that_is_not_there_is_one_line_and_exit_4(folder: Path, capsys: Captured) -> None:
    assert main(["report", "--investigation", str(folder), "--run", "9"]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "no run 9" in said and said.count("\n") == 1


def test_layers_that_this_version_cannot_run_are_said_to_be_none_of_it(folder: Path) -> None:
    commands = ("preflight", "layer1")
    page = render(report_of(folder, commands=commands), lambda figure: figure.name)
    missing = (known for known in KNOWN if known.command not in commands)
    listed = "; ".join(f"{known.title} ({known.question})" for known in missing)
    assert f"- not run, not in this version of perfkit: {listed}\n" in page


def test_every_layer_of_the_method_has_a_command(folder: Path) -> None:
    assert [known.command for known in KNOWN if known.command not in BY_NAME] == []
    assert main(["report", "--investigation", str(folder)]) == Exit.OK
    assert "not in this version" not in (folder / "report.md").read_text()


def test_no_investigation_is_one_line_and_exit_4(tmp_path: Path, capsys: Captured) -> None:
    assert main(["report", "--investigation", str(tmp_path / "none")]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "check --investigation" in said and said.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_an_empty_investigation_is_one_line_and_exit_4(tmp_path: Path, capsys: Captured) -> None:
    Investigation.open(tmp_path / "i").close()
    assert main(["report", "--investigation", str(tmp_path / "i")]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "nothing is recorded in it yet" in said and said.count("\n") == 1


def test_a_folder_that_is_not_there_is_one_line(folder: Path, capsys: Captured) -> None:
    missing = folder.parent / "missing" / "r.md"
    assert main(["report", "--investigation", str(folder), "--output", str(missing)]) == Exit.INVALID
    assert "No such file or directory" in capsys.readouterr().err


def test_a_document_of_a_version_that_did_not_count_tied_launches_is_written_up(folder: Path) -> None:
    with sqlite3.connect(folder / "investigation.db") as database:
        (document,) = database.execute("SELECT document FROM documents").fetchone()
        older = re.sub(r',? *"tied_launches": ?\d+', "", document)
        assert older != document
        database.execute("UPDATE documents SET document = ?", [older])
    database.close()
    assert main(["report", "--investigation", str(folder)]) == Exit.OK


def test_matplotlib_is_not_loaded_where_no_figure_is_drawn(folder: Path) -> None:
    code = (
        "import sys; from perfkit.cli.app import main;"
        f"main(['report', '--no-figures', '--investigation', {str(folder)!r}]);"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
