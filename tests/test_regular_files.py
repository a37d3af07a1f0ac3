"""A pipe, a socket or a device in a file's place is refused in one line; nothing waits for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from layers.collectors.bounded import ProbeFailed
from layers.preflight.hub import locate
from layers.preflight.pins import read_pins
from parsers.errors import UnreadableInput
from perfkit.cli.app import main
from tests.conftest import REPOSITORY
from tests.layer1_traces import steady

PATIENCE_S = 60


@pytest.fixture(params=["pipe", "socket", "device"])
def irregular(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that leads to no file; the current folder is that of the test."""
    monkeypatch.chdir(tmp_path)
    if request.param == "device":
        return Path("/dev/zero")
    path = Path(f"{request.param}.json")
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    return path


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """perfkit in a process of its own: one that waits must not stop the tests."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "perfkit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)


@pytest.mark.parametrize(
    "arguments",
    [
        ["layer1", "{}"],
        ["layer1", "--trace", "{}"],
        ["layer1", "--nsys", "{}"],
        ["layer1", "--dcgm", "{}"],
        ["layer1", "--smi", "{}"],
        ["preflight", "--diff", "{}", "{}"],
    ],
    ids=" ".join,
)
def test_no_command_waits_for_what_is_no_file(arguments: list[str], irregular: Path) -> None:
    done = run([argument.format(irregular) for argument in arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{irregular}: " in done.stderr and "it is a pipe or a device" in done.stderr


def test_a_pipe_among_files_costs_only_itself(tmp_path: Path) -> None:
    steady().write(tmp_path / "a.json")
    os.mkfifo(tmp_path / "b.json")
    done = run(["layer1", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--no-record"])
    assert "PK130" in done.stdout and "it is a pipe or a device" in " ".join(done.stdout.split())


def test_a_report_is_never_written_over_what_is_no_file(irregular: Path) -> None:
    steady().write(Path("trace.json"))
    main(["layer1", "trace.json", "--investigation", "found"])
    done = run(["report", "--investigation", "found", "--output", str(irregular), "--no-figures"])
    assert done.returncode == 4 and "is no file that can be replaced" in done.stderr


def test_an_investigation_whose_database_is_no_file_is_refused(tmp_path: Path) -> None:
    trace, found = steady().write(tmp_path / "trace.json"), tmp_path / "found"
    found.mkdir()
    os.mkfifo(found / "investigation.db")
    done = run(["layer1", str(trace), "--investigation", str(found)])
    assert done.returncode == 4 and "investigation.db: is no file" in done.stderr


def test_declared_files_of_preflight_are_refused_too(irregular: Path) -> None:
    with pytest.raises(UnreadableInput, match="it is a pipe or a device"):
        read_pins(irregular, {})
    with pytest.raises(ProbeFailed, match="is a pipe or a device"):
        locate(str(irregular), "datasets")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [(["layer1", ""], 2), (["layer1", "a.json", "--compare", ""], 4), (["layer1", "--trace="], 2)],
)
def test_an_empty_name_is_a_variable_that_is_not_set(
    arguments: list[str], place: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert f"argument {place} is empty" in capsys.readouterr().err


def test_the_command_behind_two_dashes_may_have_empty_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["run", "--no-record", "--tag", "a=json:dumps", "--", "sh", "-c", 'echo "got [$1]"', "sh", ""])
    assert "got []" in capfd.readouterr().out
