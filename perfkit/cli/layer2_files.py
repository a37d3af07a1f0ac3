"""The captures that `perfkit layer2` is given by name: those to judge, and later ones to set beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePath
from typing import TYPE_CHECKING

from layers.collectors.named_files import find_files
from layers.collectors.stacks.recording import Mode
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.wording import counted, first_few
from layers.layer2_stacks.collect import collect_captures, stack_files_in
from layers.layer2_stacks.model import Capture
from parsers.errors import UnreadableInput, UsageError
from perfkit.cli import output

if TYPE_CHECKING:
    from layers.layer2_stacks.choice import Choice
    from perfkit.cli.layer2_exports import Exports

MODES = [str(mode) for mode in Mode if mode is not Mode.UNKNOWN]
NO_STACKS = "no file of stacks in it (.raw, .json, .speedscope, .folded, .collapsed)"


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line names: captures, those from before a change, later ones, logs, and modes."""

    names: Sequence[str]
    before: Sequence[str]
    later: Sequence[str]
    logs: Sequence[str]
    modes: Sequence[str]

    @property
    def all(self) -> list[str]:
        """All of it."""
        return [*self.names, *self.before, *self.later, *self.logs, *self.modes]


@dataclass(frozen=True, slots=True)
class Judged:
    """A result with the captures that it is of, those from before, and all files that it rests on."""

    result: Result
    captures: tuple[Capture, ...]
    before: tuple[Capture, ...]
    artifacts: tuple[Artifact, ...]


def read_and_judge(given: Given, choice: Choice, exports: Exports) -> Judged:
    """The result of captures that exist; UsageError where none is named, or an export is one."""
    from layers.layer2_stacks.judge import judge

    if not given.names:
        raise UsageError("name a service (--server URL, --pid N) or captures (--raw FILE): layer2 --help")
    read = read_captures((given.names, given.before, given.later), given.logs, given.modes)
    captures, before, later = read.sets
    exports.check(read.artifacts, compares=bool(given.before), as_json=False)
    result = judge(captures, choice=choice, before=before, later=later, unread=read.lost)
    return Judged(result, captures, before, read.artifacts)


@dataclass(frozen=True, slots=True)
class ReadCaptures:
    """What was read, one tuple a set; `lost`: files that could not be, logs that belong to none of them."""

    sets: tuple[tuple[Capture, ...], ...]
    artifacts: tuple[Artifact, ...]
    lost: tuple[str, ...]


def read_captures(sets: Sequence[Sequence[str]], logs: Sequence[str], modes: Sequence[str]) -> ReadCaptures:
    """Sets of files, folders and patterns, of which the first may not be empty; a file that several sets name
    belongs to the last. UsageError for a mode that there is not."""
    told = ToldModes.parse(modes)
    found = [find_files(names, stack_files_in, NO_STACKS) for names in sets]
    set_of = {path: number for number, paths in enumerate(found) for path in paths}
    with output.progress(f"reading {counted(len(set_of), 'capture')}", len(set_of)) as step:
        collected = collect_captures(list(set_of), logs, told.of, step)
    read = tuple(
        tuple(c for c in collected.captures if set_of[c.recorded.path] == number)
        for number in range(len(sets))
    )
    if not read[0]:
        raise UnreadableInput(first_few(collected.unread) or f"{sets[0][0]}: is in another set as well")
    return ReadCaptures(read, collected.artifacts, (*collected.unread, *collected.unused_logs))


@dataclass(frozen=True, slots=True)
class ToldModes:
    """What --mode says: one for all files, and patterns of names with their own, of which the last that fits
    counts."""

    for_all: Mode | None
    patterns: tuple[tuple[str, Mode], ...]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> ToldModes:
        """`idle`, or `active=PATTERN`; UsageError for anything else."""
        pairs = [(text.partition("=")[2], _mode(text)) for text in texts]
        alone = [mode for pattern, mode in pairs if not pattern]
        return cls(alone[-1] if alone else None, tuple(pair for pair in reversed(pairs) if pair[0]))

    def of(self, path: str) -> Mode | None:
        """None where nothing is said of this file."""
        fits = (mode for pattern, mode in self.patterns if fnmatch(PurePath(path).name, pattern))
        return next(fits, self.for_all)


def _mode(text: str) -> Mode:
    word = text.partition("=")[0]
    if word not in MODES:
        raise UsageError(f"--mode {text}: say {', '.join(MODES[:-1])} or {MODES[-1]}, or MODE=PATTERN")
    return Mode(word)
