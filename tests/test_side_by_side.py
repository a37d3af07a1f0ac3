"""The turns of tests that run side by side: one that must be alone is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY

TAKE_TURNS = """
import sys
from pathlib import Path
from tests.side_by_side import turn

folder, alone, times = Path(sys.argv[1]), sys.argv[2] == "alone", int(sys.argv[3])

def say(what):
    with open(folder / "log", "a") as log:
        log.write(f"{what} {sys.argv[2]}\\n")

for _ in range(times):
    with turn(folder, alone):
        say("begin")
        say("end")
"""


def test_a_test_that_must_be_alone_is_and_everybody_has_all_turns(tmp_path: Path) -> None:
    kinds = ("beside", "beside", "alone", "alone")
    workers = [
        subprocess.Popen([sys.executable, "-c", TAKE_TURNS, tmp_path, kind, "100"], cwd=REPOSITORY)
        for kind in kinds
    ]
    assert [worker.wait() for worker in workers] == [0] * 4
    inside: list[str] = []
    lines = (tmp_path / "log").read_text().splitlines()
    for what, kind in map(str.split, lines):
        if what == "end":
            inside.remove(kind)
            continue
        assert "alone" not in inside and (kind == "beside" or not inside)
        inside.append(kind)
    assert len(lines) == 2 * 4 * 100
