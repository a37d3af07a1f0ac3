"""Several files in several processes: the same result, and one file's misfortune is not the others'."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from layers.layer1_gpu_busy import collect
from layers.layer1_gpu_busy.collect import Collected, collect_traces
from parsers.errors import UnreadableInput
from perfkit.cli import app
from tests.conftest import REPOSITORY
from tests.layer1_traces import host_only, steady
from tests.writers.decode_loop import decode_loop

PATIENCE_S = 30.0


@pytest.fixture
def in_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file goes to a process of its own, however small it is."""
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


def when_a_child_has(argument: str, act: Callable[[psutil.Process], None]) -> threading.Thread:
    """Starts a watch that acts once on the first child of this process with this argument."""

    def watch() -> None:
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            for child in psutil.Process().children():
                if child.is_running() and argument in child.cmdline():
                    act(child)
                    return
            time.sleep(0.01)

    watching = threading.Thread(target=watch)
    watching.start()
    return watching


@pytest.mark.usefixtures("in_children")
def test_a_child_that_is_killed_while_it_reads_costs_only_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = str(steady().write(tmp_path / "a.json"))
    endless = str(tmp_path / "endless.json")
    os.mkfifo(endless)
    watching = when_a_child_has(endless, lambda child: child.kill())
    code = app.main(["layer1", "--no-record", good, endless])
    watching.join()
    shown = " ".join(capsys.readouterr().out.split())
    assert code == 3 and shown.startswith("HOST-BOUND?")
    assert "1 of 2 files could not be read" in shown and "was killed by signal 9" in shown


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
    def refuse(path: str, busy_only: bool) -> Collected:
        raise AssertionError(f"{path} went to a child")

    monkeypatch.setattr(collect, "IN_PROCESS_BELOW_BYTES", 0)
    monkeypatch.setattr(collect, "_analyse_in_child", refuse)
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
