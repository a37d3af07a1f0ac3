"""Reads captures that exist: files of stacks, each with what py-spy said while it wrote them.

A log belongs to a capture by its name beside it, or by the name of the file that it says it wrote; a text
copied out of a terminal may hold several. What cannot be read is told and does not stop the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath

from layers.collectors.named_files import files_directly_in
from layers.collectors.stacks.recording import Mode
from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact
from layers.evidence.wording import first_few
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.modes import mode_of
from parsers.errors import UnreadableInput, UsageError
from parsers.loss_tally import LossTally
from parsers.pyspy_log import PySpyLog, parse_log, read_lines, read_logs
from parsers.pyspy_raw import read_raw
from parsers.pyspy_speedscope import read_speedscope
from parsers.regular_file import open_regular
from parsers.stack_model import RecordedStacks
from parsers.text_stream import open_text

STACK_FILES = frozenset({".raw", ".json", ".speedscope", ".folded", ".collapsed"})
"""What a folder is searched for."""
LOG_SUFFIXES = (".log", ".stdout", ".stderr", ".out", ".err")
SNIFFED_BYTES = 64
NO_STACKS = {
    b"[{": "a chrome trace or another list: record with --format speedscope, or raw",
    b"<svg": "a drawing (py-spy's default format): record with --format speedscope, or raw",
    b"<?xml": "a drawing (py-spy's default format): record with --format speedscope, or raw",
    b"<!DOCTYPE": "a page: record with --format speedscope, or raw",
}


@dataclass(frozen=True, slots=True)
class CollectedStacks:
    """Captures, all files that were read, why others could not be, and logs that belong to no capture."""

    captures: tuple[Capture, ...]
    artifacts: tuple[Artifact, ...]
    unread: tuple[str, ...] = ()
    unused_logs: tuple[str, ...] = ()


def stack_files_in(folder: str) -> list[str]:
    """The files of a folder that may hold stacks, by their names."""
    return [path for path in files_directly_in(folder) if PurePath(path).suffix in STACK_FILES]


def collect_captures(
    paths: Sequence[str],
    logs: Sequence[str] = (),
    told_mode: Callable[[str], Mode | None] = lambda path: None,
    step: Callable[[], None] = lambda: None,
) -> CollectedStacks:
    """Read every file and log; `told_mode` says in which mode a path was recorded, where somebody told;
    `step` is called after each file. UnreadableInput where no file could be read, UsageError where a log
    tells of none of them."""
    told = _Logs(logs)
    captures, unread = list[Capture](), list[str]()
    for path in paths:
        try:
            recorded = read_stacks(path)
        except UnreadableInput as error:
            unread.append(str(error))
        else:
            log = told.of(path, alone=len(paths) == 1)
            found, source = mode_of(recorded, log, told_mode(path))
            captures.append(Capture(recorded, found, log, mode_from=source))
        step()
    if not captures:
        raise UnreadableInput(first_few(unread))
    if logs and len(told.unused()) == len(told.runs):
        raise UsageError(f"--log: tells of none of these captures ({first_few(told.unused())})")
    files = (*map(artifact_of, captures), *(describe_artifact(Path(path)) for path in told.read))
    return CollectedStacks(tuple(captures), files, tuple(unread), tuple(told.unused()))


def artifact_of(capture: Capture) -> Artifact:
    """The capture's file as what numbers rest on."""
    recorded = capture.recorded
    return Artifact(recorded.path, recorded.sha256, recorded.size_bytes)


def read_stacks(path: str) -> RecordedStacks:
    """The file by what it begins with. UnreadableInput for everything else, with what it seems to be."""
    start = _start(path)
    for beginning, what in NO_STACKS.items():
        if start.startswith(beginning):
            raise UnreadableInput(f"{path}: {what}")
    return read_speedscope(path) if start.startswith(b"{") else read_raw(path)


def _start(path: str) -> bytes:
    """Of the text, inflated, without blanks; empty where the file is, as a recording without samples
    leaves it behind."""
    try:
        with open_regular(path) as file:
            if not file.read(1):
                return b""
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be opened: {error.strerror or error}") from error
    stream = open_text(path, wanted="stacks", utf16=True)
    try:
        return b"".join(stream.read(SNIFFED_BYTES).split())
    finally:
        stream.close()


class _Logs:
    """The runs that logs given by name tell of, and logs that lie beside captures; `read`: all files read."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.runs = [(path, log) for path in paths for log in read_logs(path)]
        self.read = list(paths)
        self._used: set[int] = set()

    def of(self, path: str, *, alone: bool) -> PySpyLog | None:
        """By the name that a run says it wrote; one run and one capture belong together whatever it says."""
        name = PurePath(path).name
        named = [n for n, (_, log) in enumerate(self.runs) if PurePath(log.written).name == name]
        numbers = named or ([0] if alone and len(self.runs) == 1 else [])
        if numbers:
            self._used.add(numbers[-1])
            return self.runs[numbers[-1]][1]
        return self._beside(path)

    def _beside(self, path: str) -> PySpyLog | None:
        """What files of the capture's name say together; py-spy's stdout and stderr may be two of them."""
        found = list(_log_paths(path))
        self.read += found
        tally = LossTally()
        lines = chain.from_iterable(read_lines(log, tally) for log in found)
        return parse_log(lines, tally) if found else None

    def unused(self) -> list[str]:
        """Runs that belong to no capture."""
        left = (run for n, run in enumerate(self.runs) if n not in self._used)
        return [f"{path}: a run that wrote {log.written or 'no file that it names'}" for path, log in left]


def _log_paths(path: str) -> Iterator[str]:
    """`a.raw.log` and `a.log`, with any of the endings."""
    bare = str(PurePath(path).with_suffix("")) if PurePath(path).suffix else path
    for name in dict.fromkeys(f"{stem}{suffix}" for stem in (path, bare) for suffix in LOG_SUFFIXES):
        if name != path and Path(name).is_file():
            yield name
