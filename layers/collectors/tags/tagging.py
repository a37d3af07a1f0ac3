"""Checks tags in the command's own Python, runs the command with them, and reads what was called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.tags.command import Interpreter
from layers.collectors.tags.plan import Tag, configuration
from parsers.errors import UsageError

INJECTED = Path(__file__).with_name("injected")
CONFIG_VARIABLE = "PERFKIT_TAGS"
CHECK_TIMEOUT_S = 300.0
"""Importing an engine takes up to a minute from a cold network file system."""
NO_RANGES = "nothing"
"""What the injected file says that ranges are made of where it can make none."""


class CheckedTags(msgspec.Struct, frozen=True):
    """What the check found: problems by tag, what ranges are made of, and ns that a range adds to a call."""

    problems: list[str]
    ranges: str
    cost_ns: list[float]


class Count(msgspec.Struct, frozen=True):
    """One line of the report: calls of a tag in a process so far."""

    tag: str
    pid: int
    calls: int
    ranges: str
    batch_failures: int
    batch_problem: str


@dataclass(frozen=True, slots=True)
class TaggedRun:
    """What came of the command: the last count of each tag in each process."""

    exit_code: int
    counts: tuple[Count, ...]


def check_tags(
    tags: Sequence[Tag], interpreter: Interpreter, timeout_s: float = CHECK_TIMEOUT_S
) -> CheckedTags:
    """Import every tagged module as the command would; UsageError where a tag cannot be set."""
    environment = os.environ | {CONFIG_VARIABLE: json.dumps(configuration(tags, ""))}
    script = INJECTED / "sitecustomize.py"
    command = [interpreter.path, str(script), interpreter.first_folder]
    try:
        text = output_of(command, timeout_s, environment=environment, starts_others=True)
    except ProbeFailed as error:
        raise UsageError(f"the tags could not be checked with {interpreter.path}: {error}") from error
    checked = _answer(text)
    if checked is None:
        modules = ", ".join(sorted({tag.module for tag in tags}))
        raise UsageError(
            f"the tags could not be checked with {interpreter.path}: it gave no answer, so it is no Python "
            f"(--python names the command's), or importing {modules} ended it"
        )
    if checked.problems:
        raise UsageError("; ".join(checked.problems))
    if checked.ranges == NO_RANGES:
        what = "neither torch nor libnvToolsExt.so.1, so there are no ranges to make"
        raise UsageError(f"{interpreter.path} has {what}: run the command in the service's environment")
    return checked


def _answer(text: bytes) -> CheckedTags | None:
    """The last line that is one: a module that is imported may print anything, at any time."""
    for line in reversed(text.splitlines()):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(line, type=CheckedTags)
    return None


def run_tagged(
    command: Sequence[str], tags: Sequence[Tag], report: Path, stdout: TextIO | None = None
) -> TaggedRun:
    """Run the command to its end, in the foreground; Ctrl-C and SIGTERM reach it and not perfkit.

    `stdout`: where its output goes, None for perfkit's own. Raises UsageError where it cannot be started.
    """
    try:
        process = subprocess.Popen(command, env=tagged_environment(os.environ, tags, report), stdout=stdout)
    except OSError as error:
        why = f"{error.strerror}: has the file a first line #! with an interpreter that exists?"
        raise UsageError(f"{command[0]}: cannot be started: {why}") from error
    with _signals_for(process):
        code = process.wait()
    return TaggedRun(code, tuple(read_report(report)))


def tagged_environment(base: Mapping[str, str], tags: Sequence[Tag], report: Path) -> dict[str, str]:
    """The environment by which every Python below tags what it imports."""
    places = [str(INJECTED), *filter(None, [base.get("PYTHONPATH")])]
    config = json.dumps(configuration(tags, str(report.absolute())))
    return {**base, "PYTHONPATH": os.pathsep.join(places), CONFIG_VARIABLE: config}


def read_report(path: Path) -> list[Count]:
    """The last count of each tag in each process; a line that a full disk cut is left out."""
    last: dict[tuple[str, int], Count] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            count = msgspec.json.decode(line, type=Count)
        except msgspec.DecodeError:
            continue
        last[count.tag, count.pid] = count
    return list(last.values())


@contextmanager
def _signals_for(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Ctrl-C reaches the command by the terminal and is ignored here; SIGTERM is handed on."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminate = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, terminate)
