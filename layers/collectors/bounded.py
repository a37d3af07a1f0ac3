"""Runs another program for its output, for no longer than it is given, and never waits for one that hangs.

A probe of the machine must not be able to hang perfkit: a program that does not end is killed with all that
it started, and one that even then does not end (it is stuck in a driver) is left behind.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

REAP_WAIT_S = 1.0
MS_PER_S = 1000


class ProbeFailed(Exception):
    """A program gave no answer; the message says why in one line."""


def output_of(
    command: Sequence[str],
    timeout_s: float,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """What the program wrote to stdout; ProbeFailed if it is not there, fails, or takes too long."""
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ProbeFailed(f"{name}: {error.strerror}") from error
    try:
        out, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _give_up(process)
        raise ProbeFailed(f"{name}: no answer in {timeout_s:g} s") from None
    if process.returncode:
        words = (errors or out).decode(errors="replace").strip().splitlines()
        raise ProbeFailed(f"{name}: {words[-1] if words else f'exit code {process.returncode}'}")
    return out


def readable(file: IO[bytes], timeout_s: float) -> bool:
    """Whether there is something to read, or the end, within this time; by poll, which takes any number of
    open files."""
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(timeout_s * MS_PER_S))


def _give_up(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(REAP_WAIT_S)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass  # it just ended, or it hangs in the kernel; neither is worth another moment
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
