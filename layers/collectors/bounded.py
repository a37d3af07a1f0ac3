"""Runs another program for its output: for no longer than it is given, and for no more than memory can hold.

A probe of the machine must not be able to hang perfkit, to fill its memory or to outlive it. The program is
read until it has ended, not until everything that it started has closed its output. What is left of it then,
or when it is given up, or when perfkit is interrupted, is killed: its process group, and whatever else
carries its tag in the environment. One that even then does not end (it is stuck in a driver) is left behind.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from layers.collectors.guarded_probes import guarded_group, guarded_tag
from layers.collectors.processes import LAUNCH_VARIABLE, family_of, new_tag
from layers.collectors.stopping import kill_all

MAX_OUTPUT_BYTES = 64 << 20
"""Of each stream: far above the longest list of packages, or difference of a checkout that says anything."""
CHUNK_BYTES = 1 << 16
REAP_WAIT_S = 1.0
MS_PER_S = 1000


class ProbeFailed(Exception):
    """A program gave no answer; the message says why in one line."""


class NotStarted(ProbeFailed):
    """There is no such program, or it cannot be run."""


def output_of(
    command: Sequence[str],
    timeout_s: float,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    starts_others: bool = False,
) -> bytes:
    """What the program wrote to stdout; ProbeFailed if it is not there, fails, takes too long, or says too
    much.

    `stdin` is what it reads: a file, which nobody has to write while it runs. `starts_others`: it runs code
    of which nobody knows what it starts, so what it left is looked for even where nothing of it holds the
    output open.
    """
    name, tag = Path(command[0]).name, new_tag()
    environment = {**(os.environ if environment is None else environment), LAUNCH_VARIABLE: tag}
    process, whole = None, False
    with guarded_tag(LAUNCH_VARIABLE, tag):
        try:
            process = _started(command, stdin, cwd, environment)
            with guarded_group(process.pid):
                out, errors, whole = _read_all(process, timeout_s)
        except NotStarted:
            whole = True
            raise
        except subprocess.TimeoutExpired:
            raise ProbeFailed(f"{name}: no answer in {timeout_s:g} s") from None
        except _TooMuch:
            raise ProbeFailed(f"{name}: it printed more than {MAX_OUTPUT_BYTES >> 20} MiB") from None
        finally:  # an interrupt comes by here, too
            if starts_others or not whole:
                _end(process, tag)
            if process is not None:
                _close(process)
    if process.returncode:
        words = (errors or out).decode(errors="replace").strip().splitlines()
        raise ProbeFailed(f"{name}: {words[-1] if words else f'exit code {process.returncode}'}")
    return out


def _started(
    command: Sequence[str], stdin: IO[bytes] | int, cwd: Path | None, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """In a session, and so a process group, of its own."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=stdin, stdout=pipe, stderr=pipe, cwd=cwd, env=environment, start_new_session=True
        )
    except OSError as error:
        raise NotStarted(f"{Path(command[0]).name}: {error.strerror}") from error


class _TooMuch(Exception):
    """A stream passed MAX_OUTPUT_BYTES."""


def _read_all(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes, bool]:
    """Both streams until the process has ended, and whether nothing holds them open any more.

    TimeoutExpired or _TooMuch where the end does not come.
    """
    assert process.stdout is not None and process.stderr is not None
    give_up = time.monotonic() + timeout_s
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    end = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as watched:
            watched.register(end, selectors.EVENT_READ)
            for stream in kept:
                watched.register(stream, selectors.EVENT_READ)
            while (ready := _ready(watched, give_up)) != {end}:
                if not ready:
                    raise subprocess.TimeoutExpired(process.args, timeout_s)
                for readable_one in ready - {end}:
                    _take(watched, cast(IO[bytes], readable_one), kept)
            whole = len(watched.get_map()) == 1
    finally:
        os.close(end)
    process.wait()
    out, errors = map(bytes, kept.values())
    return out, errors, whole


def _ready(watched: selectors.BaseSelector, give_up: float) -> set[object]:
    """What can be read, or has ended; empty when the time is up."""
    return {key.fileobj for key, _ in watched.select(max(0.0, give_up - time.monotonic()))}


def _take(watched: selectors.BaseSelector, stream: IO[bytes], kept: dict[IO[bytes], bytearray]) -> None:
    chunk = os.read(stream.fileno(), CHUNK_BYTES)
    kept[stream] += chunk
    if not chunk:
        watched.unregister(stream)
    if len(kept[stream]) > MAX_OUTPUT_BYTES:
        raise _TooMuch


def readable(file: IO[bytes], timeout_s: float) -> bool:
    """Whether there is something to read, or the end, within this time; by poll, which takes any number of
    open files."""
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(timeout_s * MS_PER_S))


def _end(process: subprocess.Popen[bytes] | None, tag: str) -> None:
    """Kill the program with all that it started, whatever session that moved to; also one of which an
    interrupt left nothing but the tag."""
    kill_all(lambda processes: family_of(processes, tag), REAP_WAIT_S)  # while it still shows whose it is
    if process is not None and process.returncode is None:
        with suppress(ProcessLookupError):  # it just ended
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel, and is not worth another moment
            process.wait(REAP_WAIT_S)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
