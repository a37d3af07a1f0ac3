"""Runs another program for its output: for no longer than it is given, and for no more than memory can hold.

A probe of the machine must not be able to hang perfkit or to fill its memory: a program that does not end, or
does not stop printing, is killed with all that it started, and one that even then does not end (it is stuck
in a driver) is left behind.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

MAX_OUTPUT_BYTES = 64 << 20
"""Of each stream: far above the longest list of packages, or difference of a checkout that says anything."""
CHUNK_BYTES = 1 << 16
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
    """What the program wrote to stdout; ProbeFailed if it is not there, fails, takes too long, or says too
    much."""
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
        out, errors = _read_all(process, timeout_s)
    except subprocess.TimeoutExpired:
        _give_up(process)
        raise ProbeFailed(f"{name}: no answer in {timeout_s:g} s") from None
    except _TooMuch:
        _give_up(process)
        raise ProbeFailed(f"{name}: it printed more than {MAX_OUTPUT_BYTES >> 20} MiB") from None
    if process.returncode:
        words = (errors or out).decode(errors="replace").strip().splitlines()
        raise ProbeFailed(f"{name}: {words[-1] if words else f'exit code {process.returncode}'}")
    return out


class _TooMuch(Exception):
    """A stream passed MAX_OUTPUT_BYTES."""


def _read_all(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Both streams to their end, and the process's; TimeoutExpired or _TooMuch where that does not come."""
    assert process.stdout is not None and process.stderr is not None
    give_up = time.monotonic() + timeout_s
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as open_streams:
        for stream in kept:
            open_streams.register(stream, selectors.EVENT_READ)
        while open_streams.get_map():
            ready = open_streams.select(max(0.0, give_up - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, timeout_s)
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK_BYTES)
                kept[cast(IO[bytes], key.fileobj)] += chunk
                if not chunk:
                    open_streams.unregister(key.fileobj)
            if max(map(len, kept.values())) > MAX_OUTPUT_BYTES:
                raise _TooMuch
    process.wait(max(0.0, give_up - time.monotonic()))
    out, errors = map(bytes, kept.values())
    for stream in kept:
        stream.close()
    return out, errors


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
