"""`perfkit layer2` on live processes: what is recorded, and the right guard and exit code where nothing can "
"be."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.processes import descendants, scan
from layers.collectors.rights import read_rights
from layers.collectors.stacks.tracers import _argv, profilers_on
from tests.command_runs import document, run
from tests.conftest import REPOSITORY
from tests.other_user import AS_NOBODY, NOBODY, without_rights
from tests.process_trees import wait_for
from tests.stack_targets import CROWD, LISTENER, SPINS, WORKS, running, wait_until

pytestmark = [
    pytest.mark.skipif(not read_rights().reads_strangers, reason="no right to sample processes here"),
    pytest.mark.alone,
]

SHORT = ("--seconds", "1", "--repeats", "1", "--no-gil")


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a look is measured for a shorter time."""
    monkeypatch.setattr("layers.collectors.stacks.tick_cost.SECONDS", 1)


def fired(made: dict[str, Any]) -> dict[str, str]:
    """Effect by code."""
    return {guard["code"]: guard["effect"] for guard in made["guards"]}


def test_a_program_that_works_is_recorded_in_both_modes(capsys: pytest.CaptureFixture[str]) -> None:
    with running(WORKS) as (pid, _):
        options = ("--seconds", "2", "--repeats", "1", "--rate", "20")
        made = document(capsys, "layer2", "--pid", str(pid), *options)
    assert [(c["mode"], c["expected_ticks"]) for c in made["captures"]] == [
        ("idle", 39),
        ("active", 39),
        ("gil", 39),
    ]
    assert made["target"]["pid"] == pid
    assert made["thread"]["scope"].startswith("MainThread in works")
    assert {leaf["function"] for leaf in made["scopes"][0]["leaves"]} <= {"works", "sleeps", "wait"}
    attempts = made["recording"]["attempts"]
    assert [attempt["ended_how"] for attempt in attempts] == ["complete"] * 3
    assert {thread["name"] for thread in attempts[0]["threads"]} == {"MainThread", "sleeper"}
    assert made["verdict"]["exit_code"] == 3, "60 looks conclude nothing"


def test_captures_stay_in_the_investigation_and_can_be_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with running(WORKS) as (pid, _):
        code, out, said = run(
            capsys, "layer2", "--pid", str(pid), *SHORT, "--investigation", str(tmp_path / "here")
        )
    assert code == 3
    assert f"process    {pid} (" in out and "it has 2 threads" in out
    assert "a look" in out
    assert "recorded as run 1" in said
    (capture,) = tmp_path.glob("here/artifacts/stacks-*/idle-1.json")
    again = document(capsys, "layer2", "--raw", str(capture))
    assert again["captures"][0]["mode"] == "idle"
    assert again["captures"][0]["lagged"] is False


def test_a_stopped_target_is_void_and_told_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with running(WORKS) as (pid, _):
        os.kill(pid, signal.SIGSTOP)
        wait_until("T", pid)
        made = document(capsys, "layer2", "--pid", str(pid), *SHORT)
    assert fired(made) == {"PK252": "void"}
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", 4)
    assert made["verdict"]["next_step"] == f"let it go on: kill -CONT {pid}"
    assert made["captures"] == []


@pytest.mark.parametrize("load", [(), ("--load", "2")], ids=["no load", "own load"])
@pytest.mark.parametrize("whose", ["front", "engine"])
def test_a_stopped_process_of_the_tree_is_void_and_nothing_is_asked_of_the_server(
    whose: str, load: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with running(LISTENER) as (front, line):
        engine, port = map(int, line.split())
        stopped = front if whose == "front" else engine
        os.kill(stopped, signal.SIGSTOP)
        wait_until("T", stopped)
        made = document(capsys, "layer2", "--server", f"http://127.0.0.1:{port}", *load, *SHORT)
    assert fired(made) == {"PK252": "void"}
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", 4)
    assert made["verdict"]["next_step"] == f"let it go on: kill -CONT {stopped}"
    assert made["verdict"]["because"].count(f"process {stopped} is stopped") == 1
    assert made["captures"] == []


def test_the_front_is_looked_at_where_the_engine_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with running(LISTENER) as (front, line):
        engine, port = map(int, line.split())
        os.kill(front, signal.SIGSTOP)
        wait_until("T", front)
        named = ("--pid", str(engine), "--server", f"http://127.0.0.1:{port}")
        made = document(capsys, "layer2", *named, "--load", "2", *SHORT)
    assert fired(made) == {"PK252": "void"}
    assert f"kill -CONT {front}" in made["verdict"]["next_step"]


def test_a_zombie_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    ended = subprocess.Popen(["true"])
    try:
        wait_until("Z", ended.pid)
        code, out, _ = run(capsys, "layer2", "--pid", str(ended.pid), *SHORT, "--no-record")
    finally:
        ended.wait()
    assert code == 4
    assert out.startswith("VOID") and "zombie" in out and "PK253" in out


def test_a_target_that_dies_in_its_first_capture_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    with running(WORKS) as (pid, _):
        killer = threading.Thread(target=kill_in_first_capture, args=(pid,))
        killer.start()
        made = document(capsys, "layer2", "--pid", str(pid), "--seconds", "30", "--repeats", "1")
        killer.join()
    assert fired(made)["PK261"] == "void"
    assert made["verdict"]["next_step"].startswith("see why it ended, and record again")
    assert made["verdict"]["exit_code"] == 4


def test_a_process_that_is_stopped_during_the_recording_voids_it(capsys: pytest.CaptureFixture[str]) -> None:
    with running(LISTENER) as (front, line):
        engine = int(line.split()[0])
        stopper = threading.Thread(target=kill_in_first_capture, args=(front, engine, signal.SIGSTOP))
        stopper.start()
        options = ("--seconds", "3", "--repeats", "1", "--no-gil", "--rate", "20")
        made = document(capsys, "layer2", "--pid", str(front), *options)
        stopper.join()
    assert fired(made)["PK252"] == "void"
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", 4)
    assert made["verdict"]["next_step"] == f"let it go on: kill -CONT {engine}"
    assert made["captures"] != [] and made["findings"] == []


def kill_in_first_capture(pid: int, other: int | None = None, how: int = signal.SIGKILL) -> None:
    """Once py-spy has taken the first look of it: the process itself, or another one."""

    def begun() -> bool:
        options = [word for profiler in profilers_on(pid) for word in _argv(profiler)]
        logs = [Path(word).with_suffix(".log") for word in options if word.endswith("/idle-1.json")]
        return any(log.exists() and b"Sampling process" in log.read_bytes() for log in logs)

    wait_for(begun, "there is no first capture")
    os.kill(pid if other is None else other, how)


def test_an_interrupted_recording_says_so_and_leaves_nobody_behind(tmp_path: Path) -> None:
    with running(WORKS) as (pid, _):
        command = [sys.executable, "-m", "perfkit", "layer2", "--pid", str(pid), "--json"]
        command += ["--investigation", str(tmp_path / "here")]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as perfkit:
            assert perfkit.stderr is not None
            while "idle-1" not in perfkit.stderr.readline():
                assert perfkit.poll() is None
            perfkit.send_signal(signal.SIGINT)
            out, _ = perfkit.communicate()
        made = json.loads(out)
        assert (perfkit.returncode, made["verdict"]["exit_code"]) == (130, 130)
        assert fired(made) == {"PK258": "void", "PK262": "directional"}
        assert made["recording"]["attempts"][0]["ended_how"] == "interrupted"
        assert profilers_on(pid) == set()


def test_a_sampler_that_cannot_keep_up_is_told_and_asked_again_slower(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running(CROWD) as (pid, _):
        made = document(capsys, "layer2", "--pid", str(pid), "--rate", "1000", *SHORT[2:], "--seconds", "2")
    first = made["captures"][0]
    assert (first["rate_hz"], first["lagged"], first["void"]) == (1000, True, True)
    assert {"PK202", "PK258"} <= fired(made).keys()
    assert max(c["rate_hz"] for c in made["captures"][1:]) <= 20
    assert made["verdict"]["exit_code"] in (3, 4)


def test_a_user_without_rights_is_told_what_to_change() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with without_rights() as perfkit, running(WORKS) as (pid, _):
        expect_no_rights(pid, perfkit("layer2", "--pid", str(pid), "--json", "--no-record"))
        text = perfkit("layer2", "--pid", str(pid), "--no-record").stdout
    assert text.startswith(f"VOID       process {pid} is user 0's, perfkit runs as user {NOBODY}")
    assert text.count("sudo env") == 2, "once as the next step, once in the check"
    assert "looks  samples" not in text, "no table of captures that are not there"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process as another user")
def test_a_user_records_his_own_process_and_a_server_that_he_launches() -> None:
    with without_rights() as perfkit, running(WORKS, how=AS_NOBODY) as (pid, _):
        own = perfkit("layer2", "--pid", str(pid), "--json", "--no-record", *SHORT)
        serve = f"{sys.executable} -m http.server {{port}} --bind 127.0.0.1"
        launched = perfkit("layer2", "--launch", serve, "--json", "--no-record", *SHORT)
    for ran, function in ((own, "works"), (launched, "select")):
        assert ran.returncode == 3, ran.stderr
        made = json.loads(ran.stdout)
        assert made["captures"][0]["samples"] > 0 and "PK251" not in fired(made)
        assert function in made["scopes"][0]["leaves"][0]["function"]


def test_a_process_of_another_pid_namespace_is_asked_where_it_is_and_who_holds_the_lock(
    capsys: pytest.CaptureFixture[str],
) -> None:
    enter = ["unshare", *(["--user", "--map-root-user"] if os.getuid() else []), "--pid", "--fork"]
    enter += ["--mount-proc", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace of one's own can be made here")
    with running(SPINS, prefix=enter) as (outside, _):
        (inner,) = descendants(scan(), [outside]) - {outside}
        options = ("--seconds", "2", "--repeats", "1", "--rate", "20")
        made = document(capsys, "layer2", "--pid", str(inner), *options)
    assert made["target"]["namespace_pid"] == 1
    assert [(c["mode"], c["expected_ticks"]) for c in made["captures"]] == [("idle", 39), ("gil", 39)]
    assert fired(made)["PK256"] == "directional"
    lock = made["thread"]["holds_lock"]
    assert 0.5 < lock["share"] <= 1, "a program that never leaves Python holds it nearly always"
    assert "on_cpu" not in made["thread"], "from outside every thread seems to run"
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("burning-cpu", 3)


def test_root_without_the_capability_is_told_how_to_get_it() -> None:
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, and setpriv to give up a capability")
    command = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", sys.executable, "-B"]
    command += ["-m", "perfkit", "layer2", "--json", "--no-record", "--pid"]
    with running(WORKS) as (pid, _):
        ran = subprocess.run([*command, str(pid)], capture_output=True, text=True, cwd=REPOSITORY)
    expect_no_rights(pid, ran)


def expect_no_rights(pid: int, ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 4, ran.stderr
    made = json.loads(ran.stdout)
    assert fired(made) == {"PK251": "void"}
    assert (made["captures"], made["measurements"], made["findings"]) == ([], [], [])
    assert f"--pid {pid}" in made["verdict"]["next_step"] or "give this root" in made["verdict"]["next_step"]
    assert "SYS_PTRACE" in made["verdict"]["next_step"]
    assert "perfkit stages" in made["verdict"]["next_step"]


def test_a_thread_that_is_not_there_is_told_before_anything_is_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running(WORKS) as (pid, _):
        code, out, said = run(capsys, "layer2", "--pid", str(pid), "--thread", "nobody", "--no-record")
    assert (code, out) == (2, "")
    assert "MainThread" in said and "sleeper" in said and "idle-1" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--pid", "4194304"), "no such process"),
        (("--pid", "1", "--raw", "x.raw"), "leave out one of them"),
        (("--pid", "1", "--port", "80"), "leave out --port"),
        (("--port", "80", "--server", "http://127.0.0.1:80"), "give one of them"),
        (("--server", "http://127.0.0.1:1"), "nothing on this machine listens"),
        (("--pid", "1", "--load", "4"), "--load needs an address"),
        (("--pid", "1", "--seconds", "0"), "--seconds 0"),
        (("--raw", "x.raw", "--load", "4"), "name the service"),
    ],
)
def test_what_cannot_be_recorded_is_one_line(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, said = run(capsys, "layer2", *arguments, "--investigation", str(tmp_path / "here"))
    assert (code, out) == (2, "")
    assert says in said and said.count("\n") == 1
