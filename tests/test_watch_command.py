"""`perfkit preflight --watch` and `layer1 --live` beside others: real samplers and processes, played GPUs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.host_source import HostProbe, Look, compare
from layers.collectors.watching import HOST, Watching
from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy import collect_live
from layers.preflight import machine
from perfkit.cli.app import main
from tests import fake_nvml
from tests.conftest import REPOSITORY
from tests.process_trees import wait_for, wait_until_gone

pytestmark = pytest.mark.alone

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(600)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"
DETACH = """
import subprocess, sys
nowhere = subprocess.DEVNULL
made = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=nowhere, start_new_session=True)
print(made.pid)
"""
PATIENCE_S = 60


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def process() -> Iterator[Callable[[str], int]]:
    """Starts Python programs that descend from no process of the test, and ends them with it."""
    started: list[int] = []

    def start(program: str) -> int:
        answer = subprocess.run([sys.executable, "-c", DETACH, program], stdout=subprocess.PIPE, check=True)
        started.append(int(answer.stdout))
        return started[-1]

    yield start
    for pid in started:
        os.killpg(pid, signal.SIGKILL)
    wait_until_gone(started)


@pytest.fixture(autouse=True)
def ids_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The played driver lists ids as they are here."""
    monkeypatch.setattr(machine, "sees_host_pids", lambda: True)
    monkeypatch.setattr(collect_live, "sees_host_pids", lambda: True)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    fake_nvml.play(monkeypatch, library)


def watched(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["preflight", "--watch", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out or "{}")


def codes(document: dict[str, Any]) -> set[str]:
    return {guard["code"] for guard in document["guards"]}


def test_others_on_our_card_are_found_kept_and_named(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    tmp_path: Path,
    process: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = process(SLEEP), process(SLEEP)
    listing = f"0:{ours}:2000:90,0:{theirs}:500:40"
    fake_nvml.play(monkeypatch, library, util="95,0", memory="2500,0", processes=listing)
    folder = tmp_path / "investigation"
    code, document = watched(capsys, "2", "--pid", str(ours), "--investigation", str(folder))
    assert (code, document["verdict"]["word"]) == (Exit.INVALID, "contended")
    (stretch,) = [one for one in document["contended"] if one["device"] == 0]
    assert stretch["why"] == [f"process {theirs} computed (40 %)"]
    assert document["cards"] == [0] and document["looks"]["gpu 1"] > 1
    with Investigation.open(folder, create=False) as investigation:
        (kept,) = investigation.runs()
    assert kept.document["contended"] == document["contended"]
    assert {path.name for path in (folder / "artifacts").iterdir()} == {
        "samples-gpu-watch.log",
        "samples-host-watch.log",
    }


def test_our_family_alone_on_the_card_is_not_contended(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    process: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = process(SLEEP)
    fake_nvml.play(monkeypatch, library, util="95", memory="2500", processes=f"0:{ours}:2000:90")
    _, document = watched(capsys, "1.5", "--pid", str(ours), "--no-record")
    assert not [one for one in document["contended"] if one["device"] == 0]
    assert ours in document["family"] and os.getpid() in document["family"]


def test_without_processes_of_ours_every_use_is_somebody_elses(
    monkeypatch: pytest.MonkeyPatch, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_nvml.play(monkeypatch, library, util="0,60")
    code, document = watched(capsys, "1.5", "--no-record")
    assert code == Exit.INVALID and "PK021" in codes(document)
    assert {one["device"] for one in document["contended"]} >= {1}


def test_without_a_gpu_the_host_is_watched_and_that_is_said(
    no_gpu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = watched(capsys, "2.5", "--no-record")
    assert (
        "no GPU was watched (gpu-watch: the driver is there and sees no GPU)"
        in (document["verdict"]["because"])
    )
    assert "foreign_cpu_max" in {m["name"] for m in document["measurements"]}
    waited = {m["name"] for m in document["measurements"]} & {"cpu_waiting_max"}
    assert bool(waited) is Path("/proc/pressure/cpu").exists()


def test_what_a_family_starts_counts_as_ours_and_as_foreign_without_it(
    no_gpu: None, tmp_path: Path, process: Callable[[str], int]
) -> None:
    spinner = process(PARENT)
    with Watching(tmp_path, [str(spinner)]) as watching:
        time.sleep(2.5)
    ours = [s.values for s in watching.watched.series if s.field == "cpu.ours"]
    assert len(ours) == 1 and ours[0].max() > 0.1
    assert len(watching.watched.family) >= 3, "perfkit, the parent and its child"


def test_a_process_that_is_not_ours_is_no_part_of_the_family(
    no_gpu: None, process: Callable[[str], int]
) -> None:
    ours, theirs = process(SLEEP), process(SLEEP)
    (first,) = HostProbe([str(ours)]).read()
    assert first.values == {f"process.ours#{ours}": 1.0} and f"process.ours#{theirs}" not in first.values


def test_cores_are_counted_between_two_looks() -> None:
    before = Look(at_ns=0, cores=4, total=1000, busy=100, ours=50, waited_ns=0)
    now = Look(at_ns=10**9, cores=4, total=1400, busy=300, ours=150, waited_ns=25 * 10**7)
    values = compare(before, now).values
    assert values == {"cpu.cores": 4, "cpu.busy": 2.0, "cpu.ours": 1.0, "cpu.waiting": 0.25}


def test_a_kernel_without_counters_and_psi_gives_reasons() -> None:
    silent = Look(at_ns=0, cores=4, total=0, busy=0, ours=0, waited_ns=None)
    answer = compare(silent, silent)
    assert not answer.values and set(answer.missing) == {"cpu.busy", "cpu.waiting"}


WATCH = [sys.executable, "-c", "import sys; from perfkit.cli.app import main; sys.exit(main(sys.argv[1:]))"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [[], ["600"]])
def test_an_interrupt_ends_it_with_what_was_recorded(
    no_gpu: None, tmp_path: Path, ending: signal.Signals, seconds: list[str]
) -> None:
    command = [*WATCH, "preflight", "--watch", *seconds, "--json", "--investigation", str(tmp_path / "i")]
    watch = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "i" / "artifacts" / f"samples-{HOST}.log"
    wait_for(lambda: log.exists() and "cpu.busy" in log.read_text(), "nothing is recorded")
    watch.send_signal(ending)
    out, _ = watch.communicate(timeout=PATIENCE_S)
    document = json.loads(out)
    assert watch.returncode == document["verdict"]["exit_code"]
    assert (watch.returncode == Exit.INTERRUPTED) is bool(seconds)
    assert document["measurements"]
    with Investigation.open(tmp_path / "i", create=False) as investigation:
        assert len(investigation.runs()) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--watch", "0"], "give a time above 0"),
        (["--watch", "1", "--pid", "4194399"], "no such process here"),
        (["5"], "go with --watch"),
        (["--watch", "0.1", "--gpu-index", "7"], "no such GPU was watched"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    no_gpu: None, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight", *arguments, "--no-record"]) == Exit.USAGE
    assert complaint in capsys.readouterr().err


def live(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["layer1", "--live", "3", *arguments, "--no-record", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_live_samples_beside_others_are_named_and_only_hint_PK164(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    process: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = process(SLEEP), process(SLEEP)
    listing = f"0:{ours}:2000:40,0:{theirs}:500:50"
    fake_nvml.play(monkeypatch, library, util="40", memory="2500", processes=listing, gpm="1")
    code, document = live(capsys, "--pid", str(ours))
    (guard,) = [g for g in document["guards"] if g["code"] == "PK164"]
    assert f"process {theirs} computed (50 %)" in guard["message"] and "samples of gpu 0" in guard["message"]
    assert code == Exit.NO_CONCLUSION and document["verdict"]["directional"]
    assert document["verdict"]["word"] == "host-bound"
    assert {finding["strength"] for finding in document["findings"]} == {"weak"}


def test_what_was_on_the_card_before_counts_as_the_service(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    process: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_nvml.play(
        monkeypatch, library, util="40", memory="2500", processes=f"0:{process(SLEEP)}:2000:40", gpm="1"
    )
    code, document = live(capsys)
    assert code == Exit.OK and not codes(document) & {"PK164", "PK165"}
    assert {"PK164", "PK165"} <= {guard["code"] for guard in document["guards_clear"]}


def test_a_neighbour_that_comes_during_the_sampling_is_noted_PK165(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    tmp_path: Path,
    process: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = process(SLEEP), process(SLEEP)
    listing = tmp_path / "processes"
    listing.write_text(f"0:{ours}:2000:40")
    fake_nvml.play(monkeypatch, library, util="40,0", memory="2500,0", processes_file=str(listing), gpm="1")
    log = tmp_path / "artifacts" / "samples-gpu-watch.log"

    def come() -> None:
        looks = [f"process.listed#{ours}", '"probe":"processes","entity":"gpu 1"']
        wait_for(lambda: log.exists() and all(look in log.read_text() for look in looks), "no look was taken")
        listing.write_text(f"0:{ours}:2000:40,1:{theirs}:900:80")

    coming = threading.Thread(target=come)
    coming.start()
    code = main(["layer1", "--live", "3", "--gpu-index", "0", "--json", "--investigation", str(tmp_path)])
    coming.join()
    document = json.loads(capsys.readouterr().out)
    (guard,) = [g for g in document["guards"] if g["code"] == "PK165"]
    assert f"process {theirs} came to gpu 1" in guard["message"]
    assert code == Exit.OK and "PK164" not in codes(document)
    assert {row["device"] for row in document["devices"]} == {0}
    assert {one["device"] for one in document["sampling"]["watch"]["contended"]} >= {1}


def test_a_live_sampling_that_is_told_to_end_is_judged_and_recorded(
    monkeypatch: pytest.MonkeyPatch, library: Path, tmp_path: Path
) -> None:
    fake_nvml.play(monkeypatch, library, util="40", memory="2500", gpm="1")
    log = tmp_path / "artifacts" / "samples-nvml.log"
    command = [sys.executable, "-m", "perfkit", "layer1", "--live", "60", "--json"]
    command += ["--investigation", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as sampling:
        wait_for(lambda: log.exists() and log.read_text().count("utilization.gpu") > 25, "nothing is sampled")
        sampling.terminate()
        document = json.loads(sampling.communicate(timeout=PATIENCE_S)[0])
    assert sampling.returncode == Exit.INTERRUPTED == document["verdict"]["exit_code"]
    assert document["verdict"]["directional"] and "stopped early" in document["verdict"]["because"]
    with Investigation.open(tmp_path, create=False) as investigation:
        (kept,) = investigation.runs()
    assert kept.document["sampling"]["asked_s"] == 60
