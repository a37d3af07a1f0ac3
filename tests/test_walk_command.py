"""The walk as a command: to the kernels of a busy device, a report after Ctrl-C, on after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.walk_kills import begun_times, behind, command, killed_often, recorded
from layers.evidence.store import Investigation
from perfkit.walk.model import Part
from tests.command_runs import run
from tests.walk_builders import profiled_server


@pytest.fixture
def server() -> Iterator[str]:
    with profiled_server() as url:
        yield url


def test_a_busy_device_leads_to_kernel_tables_and_roofline_and_no_further(
    tmp_path: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    options = ["--server", server, "--yes", "--json", "--investigation", str(folder)]
    code, out, _ = run(capsys, "investigate", *options, "--params", "1.7e9", "--gpu", "H100-SXM")
    document = json.loads(out)
    assert (code, document["verdict"]["word"]) == (0, "device-bound"), document["verdict"]
    rows = {row["command"]: row for row in document["walk"]}
    assert [name for name, row in rows.items() if "word" in row] == ["preflight", "layer1"]
    assert all("roofline and kernel tables" in rows[part]["left_out"] for part in ("layer2", "sweep", "ab"))
    assert "ncu --set full" in document["verdict"]["next_step"]
    text = (folder / "report.md").read_text()
    assert text.index("Verdict: DEVICE-BOUND") < text.index("### The walk") < text.index("### Layer 1")
    assert "`gemm_kernel`" in text and "oofline" in text.split("### Layer 1")[1]
    assert "weaker for it: no line is named" in text


def test_ctrl_c_leaves_a_report_of_what_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "investigation"
    with profiled_server(hang=True) as server:
        walk = subprocess.Popen(
            command(folder, ["--server", server]),
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


def test_a_walk_that_is_killed_goes_on_to_its_end_and_no_recorded_number_changes(
    tmp_path: Path, server: str
) -> None:
    folder = tmp_path / "investigation"
    kills = [(Part.PREFLIGHT, 0.0), (Part.LAYER1, 0.02), (Part.LAYER1, 0.15)]
    assert killed_often(folder, kills, ["--server", server]) == []
    assert behind(folder) == {part.value for part in Part}
    with Investigation.open(folder, create=False) as opened:
        last = opened.runs()[-1].document
    assert (last["command"], last["verdict"]["word"]) == ("investigate", "device-bound")


def test_what_was_recorded_and_changes_is_found(tmp_path: Path, server: str) -> None:
    """The comparison itself: a document that was altered, a row that went."""
    folder = tmp_path / "investigation"
    assert killed_often(folder, [], ["--server", server]) == []
    before = recorded(folder)
    (path,) = (folder / "artifacts").glob("walk-*/layer1.json")
    path.write_text("{}")
    assert [Path(name).name for name in before.changed_in(recorded(folder))] == ["layer1.json"]
    (log,) = (folder / "artifacts").glob("walk-*/walk.log")
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    assert {Path(name).name for name in before.changed_in(recorded(folder))} == {"layer1.json", "walk.log"}
