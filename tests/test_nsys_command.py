"""`perfkit layer1` on nsys exports: by option, by content, in folders, with traces, compared, and in
children."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layers.layer1_gpu_busy import collect
from perfkit.cli.app import main
from tests.layer1_traces import steady as steady_trace
from tests.writers.nsys import PID, NsysBuilder

PERIOD_NS, OPERATIONS = 10_000, 250


def steady(busy_ns: int = 3_000) -> NsysBuilder:
    export = NsysBuilder()
    for number in range(OPERATIONS):
        at_ns = 1_000_000 + PERIOD_NS * number
        export.launch("gemm", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=busy_ns)
    export.cuda_device(PID, 0, 0)
    return export


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["layer1", *arguments, "--json", "--no-record"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("given", [["--nsys"], ["--trace"], []])
def test_an_export_is_told_by_its_content_however_it_is_given(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = steady().write(tmp_path / "export.db")
    (device,) = document(capsys, *given, str(path))["devices"]
    assert (device["method"], device["events"], device["device"]) == ("nsys", OPERATIONS, 0)
    assert device["device_op_ratio"] == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"start,end\n1,2\n", "no SQLite database: make one with nsys export"), (b"", "the file is empty")],
)
def test_a_file_given_as_an_export_that_is_none_is_told_so(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "export.txt").write_bytes(content)
    assert main(["layer1", "--nsys", str(tmp_path / "export.txt"), "--no-record"]) == 2
    assert says in capsys.readouterr().err


def test_a_trace_given_as_an_export_is_read_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = steady_trace().write(tmp_path / "trace.json")
    assert document(capsys, "--nsys", str(path))["devices"][0]["method"] == "chrome-trace"


def test_exports_and_traces_go_in_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steady().write(tmp_path / "a.sqlite")
    steady_trace().write(tmp_path / "b.json.gz")
    devices = document(capsys, str(tmp_path))["devices"]
    assert {device["method"] for device in devices} == {"nsys", "chrome-trace"}


def test_what_only_nsys_tells_stands_with_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = steady()
    export.metric(0, 5, "SMs Active [Throughput %]", [(1_000_000 + 1_000 * n, 20) for n in range(2_000)])
    export.os_call("poll", 1_100_000, 5_000)
    found = document(capsys, str(export.write(tmp_path / "export.sqlite")))
    assert found["devices"][0]["sm_active_ratio"] == pytest.approx(0.2)
    measured = {m["name"]: (m["value"], m["unit"], m["n"]) for m in found["measurements"]}
    assert measured["sm_active_ratio"] == pytest.approx((0.2, "share", 2_000))
    assert measured["launching_thread_waits_per_s"] == pytest.approx((401.1, "1/s", 1), abs=0.1)
    nsys = found["traces"][0]["nsys"]
    assert nsys["capture"]["schema"] == "3.25.0"
    assert [(row["name"], row["waits"], row["calls"]) for row in nsys["os_calls"]] == [("poll", True, 1)]


def test_a_child_process_gives_what_this_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(steady(busy_ns).write(tmp_path / f"{busy_ns}.sqlite")) for busy_ns in (3_000, 9_500)]
    here = collect.collect_traces(paths)
    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_free_cores", lambda: 2)
    assert collect.collect_traces(paths) == here


def test_the_terminal_says_how_the_export_was_made_and_what_threads_waited_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = steady()
    export.duration(4_000_000)
    export.os_call("poll", 1_100_000, 5_000)
    main(["layer1", str(export.write(tmp_path / "export.sqlite")), "--no-record"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "version unknown, schema 3.25.0; a recording of 4 ms" in printed
    assert "waits of the threads that launch work, over 2.49 ms: poll 401/s (0.2 % of the time)" in printed


def test_a_device_that_only_copies_is_not_sent_to_its_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = steady(200)
    for number in range(OPERATIONS):
        export.memcpy(1_000_200 + PERIOD_NS * number, 9_700)
    verdict = document(capsys, str(export.write(tmp_path / "export.sqlite")))["verdict"]
    assert (verdict["word"], verdict["directional"]) == ("device-bound", True)
    assert "copies, which fill most of the busy time" in verdict["next_step"]


def test_two_exports_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (steady(ns).write(tmp_path / f"{ns}.sqlite") for ns in (3_000, 2_000))
    assert document(capsys, str(after), "--compare", str(before))["comparison"]["a"]["label"] == "3000.sqlite"


def test_one_export_that_cannot_be_read_does_not_cost_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steady().write(tmp_path / "good.sqlite")
    (tmp_path / "empty.sqlite").touch()
    found = document(capsys, str(tmp_path))
    assert len(found["devices"]) == 1
    assert "the file is empty" in found["unread"][0]["why"]


def test_a_report_is_refused_with_the_command_that_exports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report1.nsys-rep").write_bytes(b"x")
    assert main(["layer1", "--nsys", str(tmp_path / "report1.nsys-rep")]) == 2
    assert "nsys export --type sqlite" in capsys.readouterr().err
