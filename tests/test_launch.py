"""A launched server is taken down whole: children in sessions of their own, killed launchers, hidden tags."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from layers.collectors.launch import LaunchedServer, launch
from layers.collectors.processes import (
    LAUNCH_VARIABLE,
    alive,
    family_of,
    launcher_of,
    new_tag,
    read_process,
    scan,
)
from layers.collectors.stopping import Stopped, stop_all
from parsers.errors import UsageError
from tests import fake_nvml
from tests.conftest import REPOSITORY
from tests.process_trees import TREE, is_running, tree_ids, wait_for, wait_until_gone

LAUNCHER = """
import sys, time
from pathlib import Path
from layers.collectors.launch import launch
server = launch([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path(sys.argv[3]), grace_s=0.5)
print(server.tag, server._keeper.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of the user that nothing may touch: a bare interpreter, as the server's children are."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield process.pid
    assert process.poll() is None, "a process of the user was touched"
    process.kill()
    process.wait()


def launch_tree(tmp_path: Path, grace_s: float = 0.5) -> LaunchedServer:
    command = [sys.executable, "-c", TREE, str(tmp_path / "ids")]
    return launch(command, tmp_path / "server.log", grace_s=grace_s)


def test_stopping_takes_the_whole_tree_down_and_nothing_else(tmp_path: Path, bystander: int) -> None:
    server = launch_tree(tmp_path)
    ids = tree_ids(tmp_path / "ids")
    stopped = server.stop()
    assert not any(map(is_running, ids))
    assert stopped.left == ()
    assert set(stopped.asked) | set(stopped.killed) == set(ids)
    assert ids[1] in stopped.killed, "the one that ignores SIGTERM"


def test_children_whose_parent_died_are_still_taken_down(tmp_path: Path) -> None:
    with launch_tree(tmp_path):
        root, *children = tree_ids(tmp_path / "ids")
        os.kill(root, signal.SIGKILL)
        wait_until_gone([root])
        assert all(map(is_running, children))
    assert not any(map(is_running, children))


def test_the_tree_ends_with_a_launcher_that_is_killed(tmp_path: Path, bystander: int) -> None:
    launcher, _, _ = start_launcher(tmp_path)
    ids = tree_ids(tmp_path / "ids")
    launcher.kill()
    launcher.wait()
    wait_until_gone(ids)


def test_with_launcher_and_keeper_killed_the_tag_finds_them_all(tmp_path: Path, bystander: int) -> None:
    launcher, tag, keeper = start_launcher(tmp_path)
    ids = tree_ids(tmp_path / "ids")
    os.kill(keeper, signal.SIGKILL)
    launcher.kill()
    launcher.wait()
    wait_until_gone([keeper])
    assert all(map(is_running, ids))
    assert alive(launcher_of(tag), scan()) is False
    assert family_of(scan(), tag) == set(ids), "the one with a cleared environment descends from the server"
    stopped = stop_all(lambda processes: family_of(processes, tag), grace_s=0.5)
    assert stopped.left == () and not any(map(is_running, ids))


def start_launcher(tmp_path: Path) -> tuple[subprocess.Popen[str], str, int]:
    """A process that launches a tree and waits: the process, the tag of its launch, its keeper's pid."""
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, TREE, str(tmp_path / "ids"), str(tmp_path / "server.log")],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    tag, keeper = launcher.stdout.readline().split()
    launcher.stdout.close()
    return launcher, tag, int(keeper)


def test_a_killed_keeper_leaves_a_tree_that_stop_still_finds(tmp_path: Path) -> None:
    server = launch_tree(tmp_path)
    ids = tree_ids(tmp_path / "ids")
    server._keeper.kill()
    stopped = server.stop()
    assert stopped.left == () and not any(map(is_running, ids))


def test_a_server_that_ends_by_itself_is_seen_with_its_exit_code(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with launch([sys.executable, "-c", "print('hello'); raise SystemExit(7)"], log) as server:
        wait_for(lambda: server.exit_code is not None, "the end of the server is not noticed")
        assert server.exit_code == 7
        assert server.processes() == []
    assert log.read_text() == "hello\n"


def test_a_running_server_has_no_exit_code_and_is_its_own_session(tmp_path: Path) -> None:
    with launch(["sleep", "600"], tmp_path / "server.log") as server:
        assert server.exit_code is None
        (process,) = server.processes()
        assert process.pid == process.session == process.group == server.pid
    assert server.stop() == Stopped(asked=(server.pid,))


def test_memory_that_a_server_leaves_behind_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    used_mib = tmp_path / "memory"
    used_mib.write_text("1000")
    library = fake_nvml.build(tmp_path_factory.mktemp("nvml"))
    fake_nvml.play(monkeypatch, library, util="0", memory_file=str(used_mib))
    with launch(["sleep", "600"], tmp_path / "server.log") as server:
        used_mib.write_text("31000")
    assert server.wait_for_memory(timeout_s=0).held_bytes == {"GPU-fake-0": 30000 << 20}
    used_mib.write_text("1000")
    assert server.wait_for_memory().complete


def test_a_command_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot launch no-such-program: No such file"):
        launch(["no-such-program"], tmp_path / "server.log")


def test_a_child_that_asks_for_its_tag_gets_the_launchers(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    code = f"import os; print(os.environ['{LAUNCH_VARIABLE}'])"
    with launch([sys.executable, "-c", code], log) as server:
        wait_for(lambda: server.exit_code is not None, "the end of the server is not noticed")
    assert log.read_text().strip() == server.tag


def test_a_tag_names_the_process_that_made_it() -> None:
    launcher = launcher_of(new_tag())
    me = read_process(os.getpid())
    assert me is not None and (launcher.pid, launcher.start_ticks) == me.identity
    assert alive(launcher, scan()) is True


def test_a_launcher_of_another_pid_namespace_may_live_or_not() -> None:
    _, pid, start, rest = new_tag().split(".")
    assert alive(launcher_of(f"1.{pid}.{start}.{rest}"), scan()) is None


def test_a_used_again_pid_is_not_the_launcher() -> None:
    namespace, pid, start, rest = new_tag().split(".")
    assert alive(launcher_of(f"{namespace}.{pid}.{int(start) + 1}.{rest}"), scan()) is False


def test_members_of_a_group_that_are_no_targets_are_left_alone() -> None:
    """A group is signalled as a whole only where all of it is meant."""
    meant = subprocess.Popen(["sleep", "600"], process_group=0)
    other = subprocess.Popen(["sleep", "600"], process_group=meant.pid)
    stopped = stop_all(lambda _: [meant.pid], grace_s=5)
    assert stopped == Stopped(asked=(meant.pid,))
    assert other.poll() is None
    other.kill()
    for process in (meant, other):
        process.wait()
