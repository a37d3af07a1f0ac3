"""Odd names: traces that are links to nowhere or pipes, and paths that are not UTF-8."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfkit.cli.app import main
from tests.command_runs import document
from tests.layer1_traces import DEVICE_BOUND_NS, steady
from tests.stage_builders import asr_run, written
from tests.writers.load_results import console


def link_to_nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "gone" / "r1.json")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def layer1(capsys: pytest.CaptureFixture[str], *names: str) -> tuple[int, dict[str, Any]]:
    code = main(["layer1", *names, "--no-record", "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


@pytest.mark.parametrize("make", [link_to_nowhere, link_to_itself, pipe])
@pytest.mark.parametrize("pattern", ["", "*.json"], ids=["folder", "glob"])
def test_what_cannot_be_read_is_told(
    make: Callable[[Path], None], pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steady(DEVICE_BOUND_NS).write(tmp_path / "r0.json")
    make(tmp_path / "r1.json")
    code, document = layer1(capsys, os.path.join(tmp_path, pattern))
    assert code == 3 and document["verdict"]["directional"]
    told = next(guard for guard in document["guards"] if guard["code"] == "PK130")
    assert "1 of 2 files could not be read" in told["message"] and "r1.json" in told["message"]


@pytest.mark.parametrize("make", [link_to_nowhere, link_to_itself, pipe])
@pytest.mark.parametrize("command", ["import", "stages"])
def test_what_of_a_folder_cannot_be_read_is_told_by_every_command(
    command: str, make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "stages":
        written(tmp_path / "e.jsonl", asr_run())
    else:
        (tmp_path / "bench.log").write_text(console(64), encoding="utf-8")
    (tmp_path / "folder").mkdir()
    make(tmp_path / "r1.json")
    made = document(capsys, command, str(tmp_path))
    assert len(made["lost"]) == 1 and "r1.json" in made["lost"][0]


def test_a_folder_named_like_a_trace_is_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").mkdir()
    steady(DEVICE_BOUND_NS).write(tmp_path / "r.json" / "r0.json")
    assert layer1(capsys, str(tmp_path))[0] == 0


def test_a_path_that_is_not_utf_8_is_in_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a\udcff.json"
    steady(DEVICE_BOUND_NS).write(path)
    code, document = layer1(capsys, str(path))
    assert code == 0 and document["measurements"][0]["artifact"]["path"] == str(path)
