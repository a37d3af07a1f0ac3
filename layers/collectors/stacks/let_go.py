"""Sees to it that no profiler stays behind, and that no process stays stopped because of one.

py-spy stops its target for every look. Killed at the wrong moment it can leave the target stopped for good
(py-spy #390, #416, #587), so it is ended by SIGINT first, which lets it finish its look and write its file;
and where it had to be killed, a target that then stands still is continued. `ended_with_us` does the same
when perfkit is the one that is killed: a small shell waits on a pipe that only perfkit holds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from layers.collectors.processes import read_process
from layers.collectors.watching_shell import end_shell, start_shell

WRITE_S = 30.0
"""For py-spy to write its file after SIGINT: a capture of some hundred threads takes seconds."""
KILL_WAIT_S = 5.0
LOOK_S, LOOKS = 0.1, 50
"""How the shell waits for py-spy to end by itself."""
STOPPED = "T"
"""State of a process that a signal stopped, which only SIGCONT ends (proc_pid_stat(5))."""
DONE = b"done\n"
SCRIPT = f"""
read -r word && exit 0
kill -INT "-$1"
left={LOOKS}
while [ "$left" -gt 0 ] && kill -0 "$1"; do sleep {LOOK_S}; left=$((left - 1)); done
kill -KILL "-$1"
sleep {LOOK_S}
read -r stat < "/proc/$2/stat"
case "${{stat##*) }}" in {STOPPED}*) kill -CONT "$2";; esac
"""
"""$1: the profiler's group, $2: its target. A word on stdin: all is well; its end alone: perfkit is gone."""


@contextmanager
def ended_with_us(profiler: int, target: int) -> Iterator[None]:
    """While this lasts, the profiler (leader of its group) ends with perfkit, and its target goes on."""
    shell = start_shell(SCRIPT, str(profiler), str(target))
    try:
        yield
    finally:
        if shell is not None:
            _dismiss(shell)


def _dismiss(shell: subprocess.Popen[bytes]) -> None:
    assert shell.stdin is not None
    with suppress(BrokenPipeError):  # somebody killed it
        shell.stdin.write(DONE)
        shell.stdin.flush()
    end_shell(shell)


def end(profiler: subprocess.Popen[bytes], target: int, write_s: float = WRITE_S) -> None:
    """End a profiler that runs: by SIGINT, and where it does not end by SIGKILL, and free its target."""
    if profiler.poll() is not None:
        return
    was_stopped = is_stopped(target)
    profiler.send_signal(signal.SIGINT)
    try:
        profiler.wait(write_s)
        return
    except subprocess.TimeoutExpired:
        profiler.kill()
        profiler.wait(KILL_WAIT_S)
    if not was_stopped:
        _free(target)


def _free(target: int) -> None:
    """Continue a target that was running before and now stands still."""
    time.sleep(LOOK_S)  # a kernel's detaching takes a moment
    if is_stopped(target):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(target, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process."""
    process = read_process(pid)
    return process is not None and process.state == STOPPED
