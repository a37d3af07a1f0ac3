"""A pass that others took the cores from is told as void at once, with who that was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from layers.collectors import busy_others
from layers.collectors.busy_others import BusyOthers
from layers.collectors.load.plan import Load
from layers.collectors.processes import cpu_ticks
from layers.layer3_sweep import at_once, collect
from layers.layer3_sweep.at_once import void_at_once
from layers.layer3_sweep.guards_pass import CONTENDED
from layers.layer3_sweep.model import HostUse
from layers.layer3_sweep.protocol import PassKey
from tests.load_builders import whole
from tests.sweep_builders import sweep_pass
from tests.sweep_runs import Heard, loaded, sweep_plan, swept

ORPHAN = """
import subprocess, sys
quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
busy = "t = 0\\nwhile True: t += 1"
print(subprocess.Popen([sys.executable, "-c", busy], **quiet, start_new_session=True).pid)
"""
"""Its parent ends at once, so that it is nobody's child here."""


@pytest.fixture
def orphan() -> Iterator[int]:
    """A process of somebody else that keeps a core busy."""
    pid = int(
        subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, check=True).stdout
    )
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


def test_those_that_used_the_cores_are_named_and_the_server_is_not_among_them(
    orphan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy_others, "SHOWN", 1000)
    others, servers = BusyOthers([]), BusyOthers([str(orphan)])
    before = cpu_ticks(orphan)
    while cpu_ticks(orphan) < before + 2:
        time.sleep(0.01)
    assert [name for name in others.most() if name.endswith(f"({orphan})")]
    assert not [name for name in servers.most() if name.endswith(f"({orphan})")]


@pytest.mark.parametrize(("share", "void"), [(0.9, True), (0.0, False)])
def test_contention_is_told_with_its_check_and_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, void: bool
) -> None:
    made = sweep_pass(2, host=HostUse(1.0, None, 1, 10, others_share=share))
    monkeypatch.setattr(at_once, "read_pulses", lambda place, losses: [])
    monkeypatch.setattr(at_once, "pass_of", lambda *_, **__: made)
    others = BusyOthers([])
    monkeypatch.setattr(BusyOthers, "most", lambda self: ["make (7)"])
    monkeypatch.setattr(at_once, "PASS_GUARDS", [CONTENDED])
    told = void_at_once(tmp_path, PassKey(0, Load(2), 1), (), others)
    assert len(told) == void
    assert all(text.startswith("PK312 contended-repeat: others kept 90") for text in told)
    assert all(text.endswith("most CPU: make (7)") for text in told)


def test_a_sweep_says_so_after_the_pass_and_how_to_end_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(collect, "void_at_once", lambda *_: ("PK312 contended-repeat: busy",))
    heard = Heard()
    monkeypatch.setattr(heard, "says", said.append)
    with loaded(lambda _: whole()) as server:
        swept(tmp_path / "sweep", sweep_plan(server.port, repeats=1, sample=True), heard)
    assert said.count("    void: PK312 contended-repeat: busy") == 2
    assert [text for text in said if "Ctrl-C" in text] == [said[1]]
