"""Another program's output is waited for no longer, and kept to no more, than is given."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from layers.collectors import bounded
from layers.collectors.bounded import ProbeFailed, output_of
from tests.conftest import REPOSITORY
from tests.process_trees import TREE, tree_ids, wait_until_gone


def python(code: str, timeout_s: float = 30) -> bytes:
    return output_of([sys.executable, "-c", code], timeout_s)


def test_all_of_stdout_comes_back_whatever_stderr_holds() -> None:
    code = "import sys; sys.stderr.write('x' * 200_000); sys.stdout.write('y' * 200_000)"
    assert python(code) == b"y" * 200_000


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_does_not_stop_printing_is_killed(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MAX_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(ProbeFailed, match="it printed more than 1 MiB"):
        python(f"import sys\nwhile True: sys.{stream}.write('y' * 1000)")


def test_a_program_that_closes_its_output_and_stays_is_given_up() -> None:
    with pytest.raises(ProbeFailed, match="no answer in"):
        python("import os, time; os.close(1); os.close(2); time.sleep(60)", timeout_s=0.5)


def test_a_program_that_fails_says_why_by_its_last_line() -> None:
    with pytest.raises(ProbeFailed, match="no such card"):
        python("import sys; sys.exit('first\\nno such card')")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_probe_and_what_it_started_end_with_perfkit(number: signal.Signals, tmp_path: Path) -> None:
    asks, started = asking_for_a_tree(tmp_path)
    with subprocess.Popen([sys.executable, "-c", asks], cwd=REPOSITORY, stderr=subprocess.DEVNULL) as asking:
        ids = tree_ids(started)
        asking.send_signal(number)
    wait_until_gone(ids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_probe_that_just_started_ends_with_perfkit(number: signal.Signals, tmp_path: Path) -> None:
    """perfkit ends before it can tell anybody which process group the program has."""
    asks, started = asking_for_a_tree(tmp_path)
    ends = f"""
import os, pathlib, time
from layers.collectors import bounded
def end(group):
    while not pathlib.Path({str(started)!r}).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), {int(number)})
    time.sleep(60)
bounded.guarded_group = end
"""
    subprocess.run([sys.executable, "-c", ends + asks], cwd=REPOSITORY, stderr=subprocess.DEVNULL, timeout=60)
    wait_until_gone(tree_ids(started))


def asking_for_a_tree(folder: Path) -> tuple[str, Path]:
    """Code that asks a program for output which starts another and never ends, and where both ids will be."""
    started = folder / "started"
    shell = f"sleep 1000 & echo $! $$ > {started}.part; mv {started}.part {started}; wait"
    asks = f"from layers.collectors.bounded import output_of\noutput_of(['sh', '-c', {shell!r}], 900)"
    return asks, started


def test_a_probe_that_is_given_up_leaves_nothing_whatever_session_it_moved_to(tmp_path: Path) -> None:
    began = tmp_path / "began"
    waits = f"import os, time\nwhile not os.path.exists({str(began)!r}): time.sleep(0.01)\n"
    prints = "import sys\nwhile True: sys.stdout.write('y' * 65536)"
    tree = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {TREE!r}, {str(began)!r}])\n"
    with pytest.raises(ProbeFailed, match="it printed more than"):
        python(tree + waits + prints)
    wait_until_gone(tree_ids(began))


HELPER = "import subprocess\nh = subprocess.Popen(['sleep', '1000'], start_new_session=True{})\nprint(h.pid)"


def test_a_helper_that_holds_the_output_open_is_neither_waited_for_nor_left() -> None:
    wait_until_gone([int(python(HELPER.format("")))])


def test_a_helper_that_holds_nothing_is_looked_for_where_the_code_is_unknown() -> None:
    quiet = HELPER.format(", stdout=-3, stderr=-3")
    wait_until_gone([int(output_of([sys.executable, "-c", quiet], 30, starts_others=True))])
