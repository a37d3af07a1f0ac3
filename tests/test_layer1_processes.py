"""Several files in several processes: the same result, and one file's misfortune is not the others'."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from layers.layer1_gpu_busy import collect
from layers.layer1_gpu_busy.collect import collect_traces
from parsers import child_team
from parsers.child_team import Answer, ask_children
from parsers.errors import UnreadableInput
from perfkit.cli import app
from tests.conftest import REPOSITORY
from tests.layer1_traces import host_only, steady
from tests.writers.decode_loop import decode_loop

PATIENCE_S = 30.0


@pytest.fixture
def in_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files go to child processes, however small they are."""
    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_free_cores", lambda: 2)


def written(folder: Path) -> list[str]:
    """A host-bound trace of a named rank, and one without device work."""
    ranked = decode_loop()
    ranked.distributed(1, 2)
    made = {"a.json.gz": ranked, "b.json": host_only()}
    return [str(trace.write(folder / name)) for name, trace in made.items()]


@pytest.mark.parametrize("busy_only", [False, True], ids=["whole", "busy only"])
def test_children_find_what_the_process_itself_finds(
    busy_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written(tmp_path)
    here = collect_traces(paths, busy_only)
    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_free_cores", lambda: 2)
    assert collect_traces(paths, busy_only) == here


def test_one_step_of_progress_a_file(tmp_path: Path) -> None:
    steps: list[int] = []
    collect_traces(written(tmp_path), step=lambda: steps.append(1))
    assert len(steps) == 2


@pytest.mark.usefixtures("in_children")
def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    good = str(steady(operations=5).write(tmp_path / "a.json"))
    (tmp_path / "b.json").write_text("no trace")
    found = collect_traces([good, str(tmp_path / "b.json")])
    assert [trace.artifact.path for trace in found.traces] == [good]
    [unread] = found.unread
    assert (unread.path, unread.why[: len(unread.path)]) == (str(tmp_path / "b.json"), unread.path)


def test_none_that_can_be_read_is_an_error_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match=r"a\.json.*; .*b\.json"):
        collect_traces([str(tmp_path / "a.json"), str(tmp_path / "b.json")])


@pytest.mark.usefixtures("in_children")
def test_a_file_name_that_is_no_unicode_comes_back_as_it_was(tmp_path: Path) -> None:
    names = [os.fsdecode(os.fsencode(tmp_path) + b"/" + name) for name in (b"\xff\xfe.json", b"b.json")]
    for number, name in enumerate(names):
        steady(operations=number + 2).write(Path(name))
    found = collect_traces(names)
    assert [trace.artifact.path for trace in found.traces] == names


PATCHED_CHILD = """
import os, signal, sys, time
import perfkit.bootstrap
from layers.layer1_gpu_busy import collect

analyse = collect._analyse_here

def analyse_here(path, *arguments, **options):
    if "deadly" in path:
        os.kill(os.getpid(), signal.SIGSEGV if "crash" in path else signal.SIGKILL)
    if "endless" in path:
        time.sleep(600)
    return analyse(path, *arguments, **options)

collect._analyse_here = analyse_here
sys.exit(collect.work())
"""
"""A child that a file may kill, or keep for ever."""


@pytest.fixture
def patched_children(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", PATCHED_CHILD]
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setattr(collect, "child_command", lambda _, *asked: [*command, *asked])


@pytest.mark.usefixtures("in_children", "patched_children")
def test_a_child_that_is_killed_costs_only_the_file_that_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c", "deadly", "d", "deadly_crash", "e"):
        steady().write(tmp_path / f"{name}.json")
    code = app.main(["layer1", "--no-record", "--json", str(tmp_path)])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["verdict"]["word"]) == (3, "host-bound")
    read = [Path(trace["path"]).stem for trace in document["traces"]]
    assert read == ["a", "b", "c", "d", "e"]
    lost = {Path(one["path"]).stem: one["why"] for one in document["unread"]}
    assert lost.keys() == {"deadly", "deadly_crash"}
    assert "was killed by signal 9: where memory ran out" in lost["deadly"]
    assert "was killed by signal 11: a fault of perfkit or of a library" in lost["deadly_crash"]


def test_many_files_are_shared_out_among_as_many_children_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Sequence[str]] = []

    class Counted(child_team._Child):
        def __init__(self, command: Sequence[str]) -> None:
            started.append(command)
            super().__init__(command)

    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_free_cores", lambda: 2)
    monkeypatch.setattr(child_team, "_Child", Counted)
    paths = [str(steady(operations=n).write(tmp_path / f"{n}.json")) for n in range(2, 14)]
    found = collect_traces(paths)
    assert [trace.artifact.path for trace in found.traces] == paths
    assert len(started) == 2


def test_the_largest_file_is_begun_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(command: Sequence[str], questions: Sequence[str], children: int) -> Iterator[Answer]:
        asked.extend(Path(json.loads(question)).stem for question in questions)
        return ask_children(command, questions, children)

    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_free_cores", lambda: 2)
    monkeypatch.setattr(collect, "ask_children", ask)
    collect_traces([str(steady(operations=n).write(tmp_path / f"{n}.json")) for n in (20, 400, 100)])
    assert asked == ["400", "100", "20"]


STOPPED = """
import sys
import perfkit.bootstrap
from layers.layer1_gpu_busy import collect

collect.IN_PROCESS_BELOW_BYTES = 0
collect._free_cores = lambda: 2
child = sys.argv.pop(1)
collect.child_command = lambda _, *asked: [sys.executable, "-c", child, *asked]
sys.exit(perfkit.bootstrap.main())
"""


def test_sigterm_stops_the_children(tmp_path: Path) -> None:
    paths = [str(steady().write(tmp_path / f"{name}.json")) for name in ("endless", "endless_too")]
    command = [sys.executable, "-c", STOPPED, PATCHED_CHILD, "layer1", "--no-record", *paths]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    children = wait_for_children(process, 2)
    process.terminate()
    _, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, error) == (130, "perfkit: interrupted; what was recorded stays\n")
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive


def wait_for_children(process: subprocess.Popen[str], wanted: int) -> list[psutil.Process]:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        if len(children := psutil.Process(process.pid).children()) == wanted:
            return list(children)
        time.sleep(0.01)
    raise AssertionError(f"never had {wanted} children")


@pytest.mark.usefixtures("in_children")
def test_a_fault_in_a_child_is_a_fault_whose_log_holds_the_childs_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [sys.executable, "-c", "raise ZeroDivisionError('in the child')"]
    monkeypatch.setattr(collect, "child_command", lambda *_: command)
    assert app.main(["layer1", "--no-record", *written(tmp_path)]) == 70
    assert capsys.readouterr().err.count("\n") == 1
    [log] = (tmp_path / "cache" / "perfkit").iterdir()
    assert "ZeroDivisionError: in the child" in log.read_text()


def test_a_single_file_and_a_single_core_need_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(command: Sequence[str], questions: Sequence[str], children: int) -> Iterator[Answer]:
        raise AssertionError(f"{questions} went to children")

    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "ask_children", refuse)
    paths = written(tmp_path)
    assert len(collect_traces(paths[:1]).traces) == 1
    monkeypatch.setattr(collect, "_free_cores", lambda: 1)
    assert len(collect_traces(paths).traces) == 2


MAIN = """
import sys
import perfkit.bootstrap
from layers.layer1_gpu_busy import collect
from perfkit.cli import app

collect.IN_PROCESS_BELOW_BYTES = 0
collect._free_cores = lambda: 2
sys.exit(app.main(["layer1", "--no-record", *sys.argv[1:]]))
"""


def test_children_use_perfkits_own_packages_whatever_pythonpath_and_the_folder_hold(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    for name in ("layers", "parsers", "reports"):
        (foreign / name).mkdir(parents=True)
        (foreign / name / "__init__.py").write_text("raise RuntimeError('a foreign package was imported')\n")
    paths = [str(steady(operations=n).write(tmp_path / f"{n}.json")) for n in (200, 201)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(foreign), str(REPOSITORY)])}
    command = [sys.executable, "-c", MAIN, *paths]
    done = subprocess.run(command, cwd=foreign, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "over 2 devices" in done.stdout
