"""What a user is told who may not look into a folder, a file or a process: one line, no fault, no number."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from layers.collectors import processes
from parsers.errors import NotPermitted, UsageError
from tests.other_user import Perfkit, without_rights


@pytest.fixture(scope="module")
def perfkit() -> Iterator[Perfkit]:
    with without_rights() as run:
        yield run


@pytest.fixture
def capture() -> Iterator[Path]:
    """One that everybody may read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield written(Path(folder))


@pytest.fixture(scope="module")
def closed() -> Iterator[Path]:
    """A folder with a capture in it that this user may not look into."""
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder))
        Path(folder).chmod(0)
        yield Path(folder)
        Path(folder).chmod(0o700)


def written(folder: Path) -> Path:
    (folder / "one.raw").write_text("thread (1): MainThread;f (a.py:1) 9\n")
    return folder / "one.raw"


@pytest.mark.parametrize("command", ["layer2", "stages", "layer1"])
@pytest.mark.parametrize("name", ["", "one.raw"], ids=["folder", "file in it"])
def test_a_folder_that_may_not_be_looked_into_is_one_line(
    command: str, name: str, perfkit: Perfkit, closed: Path
) -> None:
    ran = perfkit(command, str(closed / name), "--no-record")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Permission denied" in ran.stderr and str(closed) in ran.stderr and ran.stderr.count("\n") == 1


def test_an_investigation_that_may_not_be_written_is_told_before_anything_is_recorded(
    perfkit: Perfkit, closed: Path
) -> None:
    ran = perfkit("layer2", "--pid", str(os.getpid()), "--investigation", str(closed / "here"))
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "Permission denied" in ran.stderr and "--investigation DIR" in ran.stderr


def test_doctor_tells_a_folder_that_may_not_be_written(perfkit: Perfkit, closed: Path) -> None:
    ran = perfkit("doctor", "--json", "--investigation", str(closed / "here"))
    assert ran.returncode == 0, ran.stderr
    (room,) = (check for check in json.loads(ran.stdout)["checks"] if check["name"] == "disk space")
    assert not room["there"] and "this user may not write" in room["seen"]
    assert "of your own" in room["remedy"]


def test_doctor_tells_whose_process_may_not_be_looked_into(perfkit: Perfkit) -> None:
    if os.getuid():
        pytest.skip("only root can look as another user")
    ran = perfkit("doctor", "--json", "--pid", str(os.getpid()))
    checks = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    service = checks["the service's processes"]
    assert "of user 0 may not be looked into" in service["seen"] and "Layer 2" in service["costs"]
    assert "as the same user or as root" in service["remedy"] and ran.returncode == 0


def test_stacks_are_read_beside_an_investigation_that_may_not_be_looked_into(
    perfkit: Perfkit, closed: Path, capture: Path
) -> None:
    here = str(closed / "here")
    ran = perfkit("layer2", str(capture), "--json", "--no-record", "--investigation", here)
    assert json.loads(ran.stdout)["captures"][0]["samples"] == 9
    assert ran.returncode == 3 and "Permission" not in ran.stderr


def test_without_a_home_all_is_as_with_one(perfkit: Perfkit, capture: Path) -> None:
    with without_rights(HOME=None) as homeless:
        ran = homeless("layer2", str(capture), "--json", "--no-record")
    assert (ran.returncode, ran.stderr) == (3, "")
    assert ran.stdout == perfkit("layer2", str(capture), "--json", "--no-record").stdout


def test_a_listener_of_another_user_is_invalid_and_names_him(perfkit: Perfkit) -> None:
    if os.getuid():
        pytest.skip("only root can look as another user")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ran = perfkit("layer2", "--port", str(listening.getsockname()[1]), "--no-record")
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "a process of user 0 listens on port" in ran.stderr and ran.stderr.endswith("or as root\n")
    assert "--pid" not in ran.stderr, "its stacks may not be read by that name either"


def test_a_process_that_proc_hides_is_no_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount of /proc with hidepid shows other users' processes to root alone."""

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(processes, "read_process", lambda pid: None)
    with pytest.raises(UsageError, match="no such process here"):
        processes.require_running([2**22 + 1])
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(NotPermitted, match="hidepid") as refused:
        processes.require_running([77])
    assert refused.value.exit_code == 4
