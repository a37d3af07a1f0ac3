"""A program that keeps printing, as a source of readings: one long-lived child, its lines stamped on arrival.

Starting such a program once a sample costs up to seconds and has hung boards (netdata issue 10362,
nvidia_gpu_exporter issue 89), so it is started once and told its interval. A line that it prints too late, or
never, stops nothing: its reader is a thread of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from layers.collectors.gpu.source import SourceUnavailable

MAX_LINE_CHARACTERS = 4096
"""A row of dcgmi with 100 fields has 1,300; the rest of a longer line is read and dropped."""
STOP_WAIT_S = 2.0
"""How long a child may take to end when asked to; then it is killed."""


class Line(NamedTuple):
    """One line and when it came."""

    text: str
    monotonic_ns: int
    wall_ns: int


def require(program: str) -> str:
    """The path of a program; SourceUnavailable where there is none."""
    path = shutil.which(program)
    if path is None:
        raise SourceUnavailable(f"{program} is not on the PATH")
    return path


def follow(command: Sequence[str], take: Callable[[Line], None], stop: threading.Event) -> int | None:
    """Run the command and hand over its lines until `stop` is set or it ends; its exit code if it did.

    What it writes to stderr counts as lines: these programs put their errors on either.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
    )
    ended = threading.Event()
    reader = threading.Thread(target=_read, args=(child, take, ended, stop), daemon=True)
    reader.start()
    while not stop.is_set() and not ended.is_set():
        stop.wait(STOP_WAIT_S)
    code = _end(child)
    reader.join(STOP_WAIT_S)
    return code if ended.is_set() else None


def _read(
    child: subprocess.Popen[str], take: Callable[[Line], None], ended: threading.Event, stop: threading.Event
) -> None:
    for line in _stamped(child):
        take(line)
    if not stop.is_set():
        ended.set()
        stop.set()


def _stamped(child: subprocess.Popen[str]) -> Iterator[Line]:
    assert child.stdout is not None
    begins = True
    while text := child.stdout.readline(MAX_LINE_CHARACTERS):
        if begins:
            yield Line(text.rstrip("\n"), time.monotonic_ns(), time.time_ns())
        begins = text.endswith("\n")


def _end(child: subprocess.Popen[str]) -> int | None:
    child.terminate()
    try:
        return child.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
    try:
        return child.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:  # stuck in the driver; it dies when the driver lets go of it
        return None
