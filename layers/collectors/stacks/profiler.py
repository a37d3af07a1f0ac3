"""py-spy itself: where it is, which version, which Pythons it knows; one run of it; one dump.

Every run is ended with perfkit (`let_go`) and says all that it has to say into a file beside what it writes,
single failures included (RUST_LOG=warn). RUST_BACKTRACE would drown them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.stacks.let_go import end, ended_with_us
from parsers.errors import UnreadableInput
from parsers.pyspy_dump import DumpedThread, parse_dump
from parsers.pyspy_log import parse_log

NAME = "py-spy"
VERSION_TIMEOUT_S = 10.0
DUMP_TIMEOUT_S = 20.0
"""A dump takes some 30 ms; one of hundreds of threads on a busy machine a second."""
DUMP_WRITE_S = 2.0
NEWEST_PYTHON = (((0, 4, 2), (3, 14)), ((0, 4, 0), (3, 13)), ((0,), (3, 11)))
"""From which version on py-spy reads which CPython (its release notes)."""

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profiler:
    """The program that is used. `version` is () where it would not say."""

    path: str
    version: Version

    def __str__(self) -> str:
        return f"{NAME} {'.'.join(map(str, self.version))}" if self.version else NAME

    @property
    def newest_python(self) -> Version | None:
        """The newest CPython that it reads; None where its version is not known."""
        return next((python for since, python in NEWEST_PYTHON if self.version >= since), None)


class DumpFailed(Exception):
    """No dump; the message is py-spy's own first line, or how it ended."""


def find_profiler() -> Profiler | None:
    """py-spy of perfkit's own environment, else of the PATH; None where there is none."""
    path = shutil.which(NAME, path=str(Path(sys.executable).parent)) or shutil.which(NAME)
    if path is None:
        return None
    try:
        words = output_of([path, "--version"], VERSION_TIMEOUT_S).decode(errors="replace")
    except ProbeFailed:
        return Profiler(path, ())
    found = re.search(r"\d+(?:\.\d+)+", words)
    return Profiler(path, tuple(map(int, found[0].split("."))) if found else ())


@contextmanager
def started(
    command: Sequence[str], target: int, out: IO[bytes], errors: IO[bytes] | int, write_s: float
) -> Iterator[subprocess.Popen[bytes]]:
    """The profiler at work on `target`; ended when the block is left, whatever for."""
    quiet = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        env={**quiet, "RUST_LOG": "warn"},
        start_new_session=True,
    )
    with ended_with_us(process.pid, target):
        try:
            yield process
        finally:
            end(process, target, write_s)


def dump(profiler: Profiler, pid: int, timeout_s: float = DUMP_TIMEOUT_S) -> tuple[DumpedThread, ...]:
    """Every thread of the process now. DumpFailed where py-spy cannot, or takes too long."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        command = (profiler.path, "dump", "--json", "--pid", str(pid))
        with started(command, pid, out, errors, DUMP_WRITE_S) as process:
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise DumpFailed(f"no answer in {timeout_s:g} s") from None
        text, said = _whole(out), _whole(errors).decode(errors="replace")
    if process.returncode:
        fatal = parse_log(said.splitlines()).fatal
        raise DumpFailed(_with_cause(fatal, said) or f"it ended with code {process.returncode}")
    try:
        return parse_dump(text, f"{NAME} dump --pid {pid}")
    except UnreadableInput as error:
        raise DumpFailed(str(error)) from error


def _with_cause(fatal: str, said: str) -> str:
    """py-spy's first line, and the innermost cause that it names."""
    causes = re.findall(r"^ {4}(?:\d+: )?(\S.*)$", said.partition("Caused by:")[2].partition("\n\n")[0], re.M)
    return f"{fatal} ({causes[-1]})" if fatal and causes else fatal


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
