"""One walk at a time: the lock of its folder is held by the walk and by what it started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parsers.errors import UsageError
from perfkit.walk import lock
from perfkit.walk.lock import held


def never() -> bool:
    return False


def test_a_second_walk_is_refused_while_one_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WAIT_S", 0.0)
    said: list[str] = []
    with (
        held(tmp_path, never, lambda: None),
        pytest.raises(UsageError, match="another walk is at work there"),
        held(tmp_path, never, lambda: said.append("waits")),
    ):
        pass
    with held(tmp_path, never, lambda: said.append("waits")):  # free again
        pass
    assert said == []


def test_a_walk_waits_for_the_part_that_a_killed_one_left(tmp_path: Path) -> None:
    said: list[str] = []
    part = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with held(tmp_path, never, lambda: None) as descriptor:
        child = subprocess.Popen(part, stdin=subprocess.PIPE, pass_fds=(descriptor,))
    assert child.stdin is not None

    def waits() -> None:
        said.append("waits")
        assert child.stdin is not None
        child.stdin.close()

    with held(tmp_path, never, waits):
        assert said == ["waits"]
    child.wait()


def test_who_waits_can_end_it(tmp_path: Path) -> None:
    with (
        held(tmp_path, never, lambda: None),
        pytest.raises(UsageError),
        held(tmp_path, lambda: True, lambda: None),
    ):
        pass
