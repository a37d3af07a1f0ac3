"""The keeper: a small process that starts one server, adopts all that descends from it, and takes it down.

    python …/bootstrap.py layers.collectors.launch_keeper:main TAG LOG GRACE_S COMMAND-AS-JSON

It is the subreaper of the server's tree: a descendant whose parent dies becomes the keeper's child, whatever
session or group it made for itself, so that nothing can get away while the keeper lives. It stops the tree
when its stdin closes, hence also when perfkit is killed. It says one JSON object per line on stdout: the
server's pid (or why there is none), its end if it ends by itself, and what was stopped.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from layers.collectors.processes import LAUNCH_VARIABLE, Process, descendants, family_of
from layers.collectors.stopping import stop_all

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h."""
LOOK_S = 0.2
"""How often ended children are taken notice of."""


def main() -> int:
    """The keeper process."""
    tag, log, grace_s, command = sys.argv[1:]
    _become_subreaper()
    try:
        server = _start(json.loads(command), tag, Path(log))
    except OSError as error:
        _say(problem=f"{json.loads(command)[0]}: {error.strerror}")
        return 1
    _say(pid=server)
    keeper = Keeper(server)
    keeper.wait_for_the_word()
    stopped = stop_all(lambda processes: _tree(processes, tag), float(grace_s), keeper.reap)
    _say(stopped=asdict(stopped))
    return 0


class Keeper:
    """Waits while the server runs."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._told = False
        signal.signal(signal.SIGTERM, self._tell)

    def wait_for_the_word(self) -> None:
        """Return when stdin closes or SIGTERM comes."""
        while not self._told:
            readable, _, _ = select.select([sys.stdin], [], [], LOOK_S)
            if readable and not os.read(sys.stdin.fileno(), 1):
                return
            self.reap()

    def reap(self) -> None:
        """Take notice of every ended child: the server's descendants become ours when their parents die."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._server:
                    _say(ended=os.waitstatus_to_exitcode(ended[1]))
        except ChildProcessError:
            pass  # no children at all, which is fine

    def _tell(self, *_: object) -> None:
        self._told = True


def _start(command: Sequence[str], tag: str, log: Path) -> int:
    """Start the server in a session of its own; its pid. What it prints goes to the log."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {LAUNCH_VARIABLE: tag},
            start_new_session=True,
        )
    process.returncode = 0  # reaped by Keeper.reap, so that Popen must not wait for it
    return process.pid


def _tree(processes: Mapping[int, Process], tag: str) -> set[int]:
    return family_of(processes, tag) | descendants(processes, [os.getpid()])


def _become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def _say(**words: object) -> None:
    """One line for the launcher, who may be gone."""
    try:
        print(json.dumps(words), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
