"""Small process trees for the tests: servers whose children hide, and what became of them.

`TREE` is a server that starts children in sessions of their own, as bare interpreters fed through stdin, one
of which clears its environment and one of which ignores SIGTERM. It writes all ids to the file that it is
given, one a line, once the whole tree stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from layers.collectors.processes import read_process

TREE = """
import os, subprocess, sys, time

SLEEP = b"import time\\nwhile True: time.sleep(60)\\n"
STUBBORN = b"import signal\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nprint(flush=True)\\n" + SLEEP

def child(script, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    made = subprocess.Popen([sys.executable, "-"], start_new_session=True, **pipes, **options)
    made.stdin.write(script)
    made.stdin.close()
    return made

stubborn = child(STUBBORN)
stubborn.stdout.readline()
ids = [os.getpid(), stubborn.pid, child(SLEEP).pid, child(SLEEP, env={}).pid]
with open(sys.argv[1] + ".part", "w") as file:
    file.write(" ".join(map(str, ids)))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""

PATIENCE_S = 60.0
"""How long a test waits for something that must come; it fails then, and asserts no time."""


def tree_ids(path: Path) -> list[int]:
    """The ids of a tree, once it stands: the server, one that ignores SIGTERM, one plain, one without tag."""
    wait_for(path.exists, f"{path} does not appear")
    return [int(word) for word in path.read_text().split()]


def is_running(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.gone


def wait_until_gone(pids: Iterable[int]) -> None:
    """Returns when none of them runs any more."""
    waiting = list(pids)
    wait_for(
        lambda: not any(map(is_running, waiting)), f"still there: {[p for p in waiting if is_running(p)]}"
    )


def wait_for(condition: Callable[[], bool], complaint: str) -> None:
    """Returns when the condition holds; fails with the complaint if it never does."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, complaint
        time.sleep(0.02)
