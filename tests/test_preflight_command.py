"""`perfkit preflight` and `perfkit doctor` as they are typed: on played GPUs, on none, and with orphans."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.processes import scan
from layers.evidence.store import DATABASE
from layers.evidence.verdict import Exit
from layers.preflight import collect
from perfkit.cli.app import main
from tests import fake_nvml
from tests.conftest import REPOSITORY
from tests.process_trees import TREE, is_running, tree_ids, wait_until_gone
from tests.test_environment_facts import SECRET, SECRETS

Run = Callable[..., tuple[int, dict[str, Any]]]
LOOK = ("--seconds", "0.5")

LAUNCHER = """
import sys, time
from pathlib import Path
from layers.collectors.launch import launch
server = launch([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path(sys.argv[3]))
print(server._keeper.pid, server.tag, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `perfkit preflight … --json` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        python = [] if "--diff" in arguments else ["--python", sys.executable]
        code = main(["preflight", *arguments, *python, "--json"])
        return code, json.loads(capsys.readouterr().out or "{}")

    return call


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    fake_nvml.play(monkeypatch, library)


def test_the_quiet_card_is_recommended_by_its_uuid(
    run: Run, monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    fake_nvml.play(monkeypatch, library, util="97,0", memory="100,200", gpm="1")
    code, document = run("--seconds", "1.5", "--no-record")
    assert (code, document["verdict"]["word"]) == (Exit.OK, "ready")
    assert document["recommended"] == {"index": 1, "uuid": "GPU-fake-1"}
    refused, chosen = document["gpus"]
    assert refused["state"] == "persistent contention" and chosen["recommended"]
    assert document["sampling"]["samplers"][0]["cpu_share"] > 0
    assert sections(document)["gpus"]["driver"] == "999.1"


def sections(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {section["name"]: section["facts"] for section in document["snapshot"]["sections"]}


def test_memory_that_is_filled_and_freed_is_contention(
    run: Run, monkeypatch: pytest.MonkeyPatch, library: Path, tmp_path: Path
) -> None:
    memory = tmp_path / "memory"
    memory.write_text("100")
    fake_nvml.play(monkeypatch, library, util="0", memory_file=str(memory), gpm="1")
    others = subprocess.Popen(
        ["sh", "-c", f"while :; do sleep 0.2; echo 40000 > {memory}; sleep 0.2; echo 100 > {memory}; done"]
    )
    code, document = run("--seconds", "1.5", "--no-record")
    others.kill()
    others.wait()
    assert (code, document["verdict"]["word"]) == (Exit.INVALID, "contended")
    assert document["gpus"][0]["state"] == "transient contention"


def test_process_ids_of_the_host_are_called_unattributable(
    run: Run, monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    fake_nvml.play(monkeypatch, library, util="0", processes="0:4194000:512", gpm="1")
    _, document = run(*LOOK, "--no-record")
    assert document["unattributable"] == [{"gpu": 0, "pids": [4194000], "memory_bytes": 512 << 20}]
    (guard,) = [g for g in document["guards"] if g["name"] == "unattributable-processes"]
    assert guard["effect"] == "note"


def test_a_machine_without_a_gpu_has_a_baseline_all_the_same(run: Run, no_gpu: None) -> None:
    code, document = run("--no-record")
    assert (code, document["verdict"]["word"]) == (Exit.OK, "no-gpu")
    assert "no GPU can be seen" in document["verdict"]["because"]
    assert document["gpus"] == [] and document["recommended"] is None
    found = sections(document)
    assert found["machine"]["cpus_usable"] == len(os.sched_getaffinity(0))
    assert "pytest" in found["packages"] and found["python"]["executable"]


def test_a_gpu_that_is_not_there_is_a_usage_error(no_gpu: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", "--gpu-index", "3", "--no-record"]) == Exit.USAGE
    assert "no such GPU; there is none" in capsys.readouterr().err


def test_no_planted_secret_reaches_the_investigation(
    run: Run,
    no_gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    _, document = run()
    main(["preflight", "--no-record"])
    shown = capsys.readouterr()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert DATABASE.encode() in repr(list(tmp_path.rglob("*"))).encode()
    assert SECRET.encode() not in kept
    assert SECRET not in json.dumps(document) + shown.out + shown.err


def test_runs_of_an_investigation_are_compared_by_number(
    run: Run, no_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run()
    code, document = run("--diff", "1", "2")
    assert (code, document["verdict"]["word"]) == (Exit.FAILED, "different")
    assert [one["name"] for one in document["differences"]] == ["environment.OMP_NUM_THREADS"]
    code, document = run("--diff", "1", "2", "--declared", "environment.OMP_*")
    assert (code, document["verdict"]["word"]) == (Exit.OK, "declared-only")
    code, document = run("--diff", "1", "1")
    assert (code, document["verdict"]["word"]) == (Exit.OK, "same")


def test_snapshots_in_files_are_compared_and_others_refused(
    run: Run, no_gpu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = run("--no-record")
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert run("--diff", "a.json", "a.json")[0] == Exit.OK
    assert main(["preflight", "--diff", "a.json", "gone.json"]) == Exit.USAGE
    run()
    assert main(["preflight", "--diff", "1", "9"]) == Exit.USAGE
    assert "has no run 9" in capsys.readouterr().err


@pytest.fixture
def orphans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A tree whose launcher and keeper were killed: server, one that ignores SIGTERM, two more.

    Launches of other test runs on this machine are kept out of sight, and so out of reach.
    """
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, TREE, str(tmp_path / "ids"), str(tmp_path / "log")],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    keeper, tag = launcher.stdout.readline().split()
    launcher.stdout.close()
    ids = tree_ids(tmp_path / "ids")
    os.kill(int(keeper), signal.SIGKILL)
    launcher.kill()
    launcher.wait()
    wait_until_gone([int(keeper)])
    ours = ("", tag)
    monkeypatch.setattr(collect, "scan", lambda: {p.pid: p for p in scan().values() if p.launch in ours})
    yield ids
    for pid in ids:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    from layers.preflight import clean

    monkeypatch.setattr(clean.clean, "__defaults__", (0.5, *(clean.clean.__defaults__ or ())[1:]))


def test_orphans_are_listed_and_nothing_is_stopped_unasked(
    run: Run, no_gpu: None, orphans: list[int]
) -> None:
    _, document = run("--no-record")
    (family,) = [one for one in document["processes"] if one["kind"] == "orphans"]
    assert {member["pid"] for member in family["members"]} == set(orphans)
    assert "orphans" in {guard["name"] for guard in document["guards"]}
    assert main(["preflight", "--clean", "--no-record"]) == Exit.USAGE
    assert all(map(is_running, orphans))


def test_clean_stops_the_whole_family_and_nothing_of_the_users(
    run: Run, no_gpu: None, short_grace: None, orphans: list[int]
) -> None:
    mine = subprocess.Popen([sys.executable, "-"], stdin=subprocess.PIPE, start_new_session=True)
    code, document = run("--clean", "--yes", "--no-record")
    assert mine.poll() is None, "a process of the user was touched"
    mine.communicate()
    assert code == Exit.OK and not any(map(is_running, orphans))
    (cleaned,) = document["cleaned"]["cleaned"]
    assert set(cleaned["stopped"]["asked"]) | set(cleaned["stopped"]["killed"]) == set(orphans)
    assert document["processes"] == []


@pytest.mark.parametrize("number", ["1", "0", "-5", "4194399"])
def test_a_group_that_is_no_abandoned_one_is_refused(
    no_gpu: None, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight", "--clean", "--group", number, "--yes", "--no-record"]) == Exit.USAGE
    assert f"--group {number}: no abandoned process group that holds a GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["preflight", "--group", "5"], "--group and --yes go with --clean"),
        (["preflight", "--yes"], "--group and --yes go with --clean"),
        (["preflight", "--declared", "gpus.*"], "--declared goes with --diff"),
        (["preflight", "--watch", "1", "--clean"], "--clean does nothing with --watch"),
        (["preflight", "--diff", "1", "2", "--data", "x"], "--data does nothing with --diff"),
        (["layer1", "t.json", "--pid", "5"], "--gpu-index, --pid and --server go with --live"),
        (["layer1", "--live", "1", "--pid", "4194399"], "no such process here"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--no-record"]) == Exit.USAGE
    assert complaint in capsys.readouterr().err


def test_what_is_not_confirmed_stays(
    no_gpu: None, orphans: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question, err: False)
    main(["preflight", "--clean", "--no-record", "--python", sys.executable])
    assert all(map(is_running, orphans))
    assert "nothing: no process of an earlier launch was left, or none was confirmed" in (
        " ".join(capsys.readouterr().out.split())
    )


def test_doctor_says_what_each_missing_thing_costs(
    no_gpu: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["word"] == "limited"
    checks = {check["name"]: check for check in document["checks"]}
    assert not checks["GPU through NVML"]["there"] and checks["git"]["there"]
    assert all(check["costs"] and check["remedy"] and check["seen"] for check in checks.values())
    assert main(["doctor"]) == Exit.OK
    shown = capsys.readouterr().out
    assert shown.startswith("LIMITED") and "costs      nothing about a GPU can be measured here" in shown


def test_doctor_sees_what_a_gpu_offers(
    monkeypatch: pytest.MonkeyPatch, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_nvml.play(monkeypatch, library, util="0")
    main(["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["GPU through NVML"]["seen"] == "0 Fake GPU; driver 999.1, CUDA 13.0"
    assert checks["SM and tensor activity through NVML"]["there"]
