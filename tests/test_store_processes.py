"""Real processes: two that record at once lose nothing, and a killed one leaves all that it recorded."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from layers.evidence.store import Investigation
from tests.evidence_builders import RESULT, start_process, tables_file

RECORD = """
import sys
from pathlib import Path
from layers.evidence.store import Investigation
from tests.evidence_builders import ENDED, RESULT, STARTED

folder, writer, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Investigation.open(folder) as investigation:
    for number in range(times):
        run_id = investigation.record(RESULT, (writer, str(number)), STARTED, ENDED)
        print(run_id, flush=True)
"""

FOREVER = "1000000"
KILLS = 15
LONGEST_DELAY_S = 0.02


def ids(output: str) -> list[int]:
    """What a writer printed, without a last line that the kill cut."""
    return [int(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]


def assert_whole(folder: Path) -> None:
    """The database is intact, and each run in it has all its rows."""
    with closing(sqlite3.connect(tables_file(folder))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with Investigation.open(folder) as investigation:
        runs = investigation.runs()
        assert len(investigation.findings()) == len(RESULT.findings) * len(runs)
        assert len(investigation.guards()) == len(RESULT.guards) * len(runs)


def test_two_processes_that_begin_and_record_at_once_lose_nothing(tmp_path: Path) -> None:
    folder, times = tmp_path / "investigation", 40
    writers = {name: start_process(RECORD, str(folder), name, str(times)) for name in ("a", "b")}
    printed = {name: ids(process.communicate()[0]) for name, process in writers.items()}
    with Investigation.open(folder) as investigation:
        recorded = {run.id: run.call.arguments for run in investigation.runs()}
    expected = {
        run_id: (name, str(number)) for name in writers for number, run_id in enumerate(printed[name])
    }
    assert all(len(printed[name]) == times for name in writers)
    assert recorded == expected
    assert_whole(folder)


def test_kills_at_random_moments_lose_nothing_that_was_recorded(tmp_path: Path) -> None:
    folder, moments = tmp_path / "investigation", random.Random(1)
    acknowledged: list[int] = []
    for kill in range(KILLS):
        process = start_process(RECORD, str(folder), f"writer {kill}", FOREVER)
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(moments.randrange(1, 10))]
        time.sleep(moments.uniform(0, LONGEST_DELAY_S))
        process.send_signal(signal.SIGKILL)
        acknowledged += ids("".join(first) + process.communicate()[0])
        assert process.returncode == -signal.SIGKILL
    with Investigation.open(folder) as investigation:
        recorded = {run.id for run in investigation.runs()}
    assert len(acknowledged) >= KILLS and set(acknowledged) <= recorded
    assert_whole(folder)


def test_a_kill_while_the_investigation_is_begun_leaves_a_folder_that_opens(tmp_path: Path) -> None:
    moments = random.Random(2)
    for kill in range(5):
        folder = tmp_path / f"investigation {kill}"
        process = start_process(f"print(flush=True)\n{RECORD}", str(folder), "writer", FOREVER)
        assert process.stdout is not None and process.stdout.readline() == "\n"
        deadline = time.monotonic() + moments.uniform(0, 0.5)
        while time.monotonic() < deadline and not folder.exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        acknowledged = ids(process.communicate()[0])
        with Investigation.open(folder) as investigation:
            assert set(acknowledged) <= {run.id for run in investigation.runs()}
        assert_whole(folder)
