"""`perfkit nsys run`: the command line that nsys gets, what becomes of the recording, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from layers.collectors.nsys_runner import Plan, ask_for_gpu_metrics, record
from perfkit.cli.app import main
from tests.writers.nsys import NsysBuilder

FAKE = Path(__file__).resolve().parent / "fake_nsys" / "nsys"

ALLOWED = "0=--gpu-metrics-devices values are:\n  all, cuda-visible, none\n  0: NVIDIA H100"
OLD_ALLOWED = "0=The --gpu-metrics-device values are: all, none"
REFUSED = "1=Illegal --gpu-metrics-devices argument: help. Insufficient privilege, see ERR_NVGPUCTRPERM."
UNKNOWN = "1=unrecognised option"


class FakeNsys:
    """A stand-in for nsys alone on PATH, beside the shell's own tools."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, metrics: str) -> None:
        self.folder, self.log = folder, folder / "arguments"
        self._monkeypatch = monkeypatch
        tools = folder / "bin"
        tools.mkdir()
        shutil.copy(FAKE, tools / "nsys")
        (tools / "nsys").chmod(0o755)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
        monkeypatch.setenv("FAKE_NSYS_LOG", str(self.log))
        monkeypatch.setenv("FAKE_NSYS_METRICS", metrics)
        monkeypatch.setenv("FAKE_NSYS_EXPORT", str(steady().write(folder / "made_before.sqlite")))

    def refuses(self, action: str) -> None:
        self._monkeypatch.setenv("FAKE_NSYS_REFUSES", action)

    def calls(self) -> list[list[str]]:
        """The arguments of every call, those of the questions about GPU metrics left out."""
        calls = [call.splitlines() for call in self.log.read_text().split("---\n")[:-1]]
        return [call for call in calls if not call[1].endswith("=help")]

    def run(self, *arguments: str) -> int:
        return main(["nsys", "run", "--investigation", str(self.folder / "found"), *arguments])


def steady() -> NsysBuilder:
    export = NsysBuilder()
    for number in range(300):
        at_ns = 1_000_000 + 10_000 * number
        export.launch("gemm", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=3_000)
    return export


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNsys:
    return FakeNsys(tmp_path, monkeypatch, REFUSED)


def test_the_whole_launch_is_wrapped_exported_and_judged(
    nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    code = nsys.run("--json", "--", "sh", "-c", "echo serving")
    printed = capfd.readouterr()
    document = json.loads(printed.out)
    assert code == document["verdict"]["exit_code"] == 0
    assert document["devices"][0]["method"] == "nsys"
    assert "serving" in printed.err
    profile, export = nsys.calls()
    (output,) = [argument for argument in profile if argument.startswith("--output=")]
    stem = output.removeprefix("--output=")
    assert profile == [
        "profile",
        "--trace=cuda,nvtx,osrt",
        "--sample=none",
        "--cpuctxsw=none",
        "--trace-fork-before-exec=true",
        "--force-overwrite=false",
        "--cuda-graph-trace=graph",
        output,
        "sh",
        "-c",
        "echo serving",
    ]
    assert export == [
        "export",
        "--type=sqlite",
        f"--output={stem}.sqlite",
        "--force-overwrite=false",
        f"{stem}.nsys-rep",
    ]
    assert Path(stem).parent.parent == nsys.folder / "found" / "artifacts"


def test_options_choose_the_stretch_and_how_graphs_are_recorded(nsys: FakeNsys) -> None:
    nsys.run("--graphs", "node", "--delay", "1234567.5", "--duration", "60", "--", "true")
    profile = nsys.calls()[0]
    assert {"--cuda-graph-trace=node", "--delay=1234567.5", "--duration=60"} <= set(profile)
    assert profile[-1] == "true"


@pytest.mark.parametrize(
    ("said", "options", "why_not"),
    [
        (ALLOWED, ("--gpu-metrics-devices=cuda-visible", "--gpu-metrics-frequency=1000"), ""),
        (OLD_ALLOWED, ("--gpu-metrics-devices=all", "--gpu-metrics-frequency=1000"), ""),
        (REFUSED, (), "nsys refuses GPU metrics here (Insufficient privilege)"),
        (UNKNOWN, (), "this nsys knows no GPU metrics"),
    ],
)
def test_gpu_metrics_are_added_where_nsys_allows_them(
    said: str, options: Sequence[str], why_not: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeNsys(tmp_path, monkeypatch, said)
    found = ask_for_gpu_metrics("nsys")
    assert (found.options, found.why_not) == (options, why_not)


def test_why_there_are_no_gpu_metrics_is_said_and_not_asking_is_quiet(
    nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    nsys.run("--no-record", "--", "true")
    assert "no SM active and tensor active: nsys refuses GPU metrics here" in capfd.readouterr().err
    nsys.run("--no-gpu-metrics", "--", "true")
    assert "SM active and tensor active: nsys" not in capfd.readouterr().err


def test_the_report_and_its_export_are_artifacts_of_the_investigation(
    nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    nsys.run("--", "true")
    (folder,) = (nsys.folder / "found" / "artifacts").iterdir()
    assert sorted(path.suffix for path in folder.iterdir()) == [".nsys-rep", ".sqlite"]
    assert "do not publish it" in capfd.readouterr().err


def test_a_command_that_fails_leaves_a_recording_that_only_hints(
    nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    assert nsys.run("--json", "--", "sh", "-c", "exit 7") == 3
    printed = capfd.readouterr()
    document = json.loads(printed.out)
    assert "nsys ended with exit code 7" in printed.err
    assert document["verdict"]["directional"]
    (failed,) = [guard for guard in document["guards"] if guard["code"] == "PK169"]
    assert failed["message"] == "the recorded command ended with exit code 7"
    assert {finding["strength"] for finding in document["findings"]} == {"weak"}


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_a_service_that_is_stopped_by_hand_did_not_fail(number: str, nsys: FakeNsys) -> None:
    assert nsys.run("--", "sh", "-c", f"kill -{number} $$") == 0


def test_recordings_that_begin_in_one_second_are_apart(
    nsys: FakeNsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stopped:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr("perfkit.cli.nsys.datetime", Stopped)
    artifacts = nsys.folder / "found" / "artifacts"
    assert nsys.run("--", "true") == 0
    before = {path: path.read_bytes() for path in artifacts.rglob("*.*")}
    nsys.refuses("profile")
    assert nsys.run("--", "true") == 4
    assert {path: path.read_bytes() for path in artifacts.rglob("*.*")} == before
    nsys.refuses("")
    assert nsys.run("--", "true") == 0
    assert [path.name for path in sorted(artifacts.iterdir())] == [
        "nsys-20260102-030405",
        "nsys-20260102-030405-2",
    ]


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("profile", "nsys wrote no recording (it ended with exit code 1)"),
        ("export", "nsys export failed: nsys: it would"),
    ],
)
def test_no_recording_is_no_result(
    action: str, says: str, nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    nsys.refuses(action)
    assert nsys.run("--", "true") == 4
    assert says in capfd.readouterr().err


@pytest.mark.parametrize("export", [None, "junk"])
def test_an_export_that_is_no_database_is_told_as_one(
    export: str | None, nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    made = nsys.folder / "made_before.sqlite"
    if export is None:
        (nsys.folder / "bin" / "cp").symlink_to("/bin/true")
    else:
        made.write_text(export)
    assert nsys.run("--", "true") == 4
    assert "nsys export wrote no SQLite database; the report itself is kept" in capfd.readouterr().err


def test_attaching_is_refused_with_the_reason(nsys: FakeNsys, capfd: pytest.CaptureFixture[str]) -> None:
    assert nsys.run("--pid", "4242") == 2
    said = capfd.readouterr().err
    assert "cannot attach to a running process: its libraries must be loaded before CUDA begins" in said
    assert "perfkit nsys run -- COMMAND" in said
    assert not nsys.log.exists()


def test_without_nsys_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["nsys", "run", "--investigation", str(tmp_path / "found"), "--", "true"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("perfkit: nsys is not on PATH: install Nsight Systems")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "name the command to record after --"),
        (["--", "--flag"], "name the command to record after --"),
        (["--graphs", "all", "--", "true"], "--graphs is graph or node, not all"),
        (["--duration", "0", "--", "true"], "--duration 0: must be more than 0 s"),
        (["--delay", "nan", "--", "true"], "--delay nan: must be more than 0 s"),
        (["--duration", "inf", "--", "true"], "--duration inf: must be more than 0 s and at most"),
        (["--", ""], "name the command to record after --"),
    ],
)
def test_what_nsys_would_misread_is_refused_before_anything_runs(
    options: list[str], says: str, nsys: FakeNsys, capfd: pytest.CaptureFixture[str]
) -> None:
    assert nsys.run(*options) == 2
    assert says in capfd.readouterr().err
    assert not nsys.log.exists()


def test_an_interrupt_ends_the_recording_and_not_perfkit(nsys: FakeNsys) -> None:
    """The signal reaches the whole foreground group: nsys stops and writes, perfkit waits for it."""
    recorded = record("nsys", Plan(["kill", "-INT", str(os.getpid())], nsys.folder / "recording"))
    assert (recorded.report.name, recorded.export.name) == ("recording.nsys-rep", "recording.sqlite")


def test_sigterm_ends_the_recording_and_not_perfkit(nsys: FakeNsys) -> None:
    """It reaches perfkit alone, which interrupts nsys: the shell that stands in for it tells of that."""
    told = nsys.folder / "told"
    wait = f"kill -TERM {os.getpid()}; sleep 1"
    fake = nsys.folder / "bin" / "nsys"
    fake.write_text(fake.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\ntrap ': > {told}' INT\n", 1))
    recorded = record("nsys", Plan(["sh", "-c", wait], nsys.folder / "recording"))
    assert told.exists() and recorded.report.is_file()


def test_an_old_nsys_writes_another_suffix(nsys: FakeNsys, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(["sh", "-c", f": > {nsys.folder}/old.qdrep; kill -9 $PPID"], nsys.folder / "old")
    assert record("nsys", plan).report.name == "old.qdrep"
