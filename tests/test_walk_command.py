"""The walk as a command: to the kernels of a busy device, a report after Ctrl-C, on after a kill."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.walk_kills import begun_times, behind, command, killed_often, recorded
from layers.evidence.store import DATABASE, Investigation
from perfkit.walk.journal import LOG, Journal
from perfkit.walk.model import Part
from tests.report_builders import record_result
from tests.test_report_walk import found, walk_result
from tests.walk_builders import profiled_server

KILLS = ((Part.LAYER1, 0.02), (Part.LAYER1, 0.15))


@dataclass(frozen=True)
class Led:
    """A walk that was killed twice and led to its end: what went wrong, its folder, the last document."""

    faults: list[str]
    folder: Path
    document: dict[str, Any]

    @property
    def report(self) -> str:
        return (self.folder / "report.md").read_text()


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Led]:
    folder = tmp_path_factory.mktemp("walk") / "investigation"
    with profiled_server() as url:
        options = ["--server", url, "--params", "1.7e9", "--gpu", "H100-SXM"]
        faults = killed_often(folder, KILLS, options)
    with Investigation.open(folder, create=False) as opened:
        yield Led(faults, folder, opened.runs()[-1].document)


def test_a_walk_that_is_killed_goes_on_to_its_end_and_no_recorded_number_changes(led: Led) -> None:
    assert led.faults == [] and begun_times(led.folder, Part.LAYER1) == len(KILLS) + 1
    assert behind(led.folder) == {part.value for part in Part}


def test_a_busy_device_leads_to_kernel_tables_and_roofline_and_no_further(led: Led) -> None:
    verdict = led.document["verdict"]
    assert (verdict["exit_code"], verdict["word"]) == (0, "device-bound")
    rows = {row["command"]: row for row in led.document["walk"]}
    assert [name for name, row in rows.items() if "word" in row] == ["preflight", "layer1"]
    assert all("roofline and kernel tables" in rows[part]["left_out"] for part in ("layer2", "sweep", "ab"))
    assert "ncu --set full" in verdict["next_step"]


def test_the_report_of_a_busy_device_opens_with_it_and_holds_the_tables(led: Led) -> None:
    text = led.report
    assert text.index("Verdict: DEVICE-BOUND") < text.index("### The walk") < text.index("### Layer 1")
    assert "`gemm_kernel`" in text and "Roofline" in text.split("### Layer 1")[1]
    assert "weaker for it: no line is named" in text


def test_ctrl_c_leaves_a_report_of_what_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with profiled_server(hang=True) as url:
        walk = subprocess.Popen(
            command(folder, ["--server", url]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        while not begun_times(folder, Part.LAYER1) and walk.poll() is None:
            time.sleep(0.05)
        walk.send_signal(signal.SIGINT)
        _, err = walk.communicate()
    assert walk.returncode == 130, err
    text = (folder / "report.md").read_text()
    assert "Verdict: PARTIAL" in text and "the walk has not come so far" in text
    assert (folder / "report.html").exists() and behind(folder) == {"preflight"}


def test_what_was_recorded_and_changes_is_found(tmp_path: Path) -> None:
    """The comparison that the kills rest on: a row, a document and a journal that changed."""
    folder, told = tmp_path / "investigation", found()
    record_result(folder, walk_result(folder, told), ["perfkit", "investigate"])
    place = folder / "artifacts" / "walk-1"
    journal = Journal(place)
    for part, outcome in told.outcomes.items():
        journal.ended(outcome, told.decisions[part], 1.0)
    before = recorded(folder)
    journal.finished()
    journal.close()
    assert before.changed_in(recorded(folder)) == []
    (place / "layer1.json").write_text("{}")
    log = place / LOG
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute("UPDATE runs SET exit_code = 99")
        database.commit()
    changed = before.changed_in(recorded(folder))
    assert [Path(name).name for name in changed] == ["runs 1", "layer1.json", LOG]
