"""What `perfkit layer2` writes beside its result: flame graphs, the tree as text, files for other tools.

Captures of one mode make one file: that of the verdict's mode has the name that was asked for, the others
have their mode behind it. Void captures are in none. What is recorded has its pictures in the investigation,
so that a report shows them wherever the captures went.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.collectors.stacks.recording import Mode
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from parsers.errors import StoreError, UsageError
from parsers.stack_model import RecordedStacks
from perfkit import __version__
from perfkit.cli import output
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.layer2_stacks.choice import Choice
    from layers.layer2_stacks.model import Capture
    from layers.layer2_stacks.weigh import Weighed
    from reports.stack_pictures import Picture

Flame = Annotated[
    Path | None,
    typer.Option(
        "--flame", metavar="FILE.svg", help="Write the thread's flame graph, which opens in any browser."
    ),
]
Difference = Annotated[
    Path | None,
    typer.Option(
        "--difference", metavar="FILE.svg", help="Write a flame graph of what changed since --compare."
    ),
]
Icicle = Annotated[bool, typer.Option("--icicle", help="Print the thread's call tree as well.")]
Speedscope = Annotated[
    Path | None,
    typer.Option("--speedscope", metavar="FILE.json", help="Write all threads for speedscope.app."),
]
Folded = Annotated[
    Path | None,
    typer.Option(
        "--folded", metavar="FILE.txt", help="Write collapsed stacks for flamegraph.pl and inferno."
    ),
]
AllThreads = Annotated[
    bool, typer.Option("--all-threads", help="Draw all threads, not that of the verdict alone.")
]
SUFFIXES = {"--flame": ".svg", "--difference": ".svg", "--speedscope": ".json"}


@dataclass(frozen=True, slots=True)
class Exports:
    """What was asked for."""

    flame: Path | None
    difference: Path | None
    icicle: bool
    speedscope: Path | None
    folded: Path | None
    all_threads: bool

    @property
    def any(self) -> bool:
        """Whether anything was."""
        return self.icicle or any((self.flame, self.difference, self.speedscope, self.folded))

    def check(self, read: Sequence[Artifact], *, compares: bool, as_json: bool) -> None:
        """UsageError for what cannot be: a capture would be written over, or nothing is compared."""
        if self.difference and not compares:
            raise UsageError("--difference: of what? Name captures from before with --compare FILE")
        if self.icicle and as_json:
            raise UsageError("--icicle prints text: leave out --json, or write --folded FILE")
        inputs = {Path(artifact.path).resolve() for artifact in read}
        named = {
            "--flame": self.flame,
            "--difference": self.difference,
            "--speedscope": self.speedscope,
            "--folded": self.folded,
        }
        for option, path in named.items():
            if path is None:
                continue
            if path.suffix != SUFFIXES.get(option, path.suffix):
                raise UsageError(f"{option} {path}: writes a file that ends in {SUFFIXES[option]}")
            if inputs.intersection(one.resolve() for one in (path, *(_named(path, mode) for mode in Mode))):
                raise UsageError(f"{option} {path}: is a capture to read: name another file")


@dataclass(frozen=True, slots=True)
class Drawn:
    """The captures that count, and the pictures of them: flame graphs, that of the verdict's mode first, and
    the difference where there is one to draw."""

    weighed: Weighed
    flames: tuple[Picture, ...]
    difference: Picture | None

    @property
    def pictures(self) -> list[Picture]:
        """All of them."""
        return [*self.flames, *([self.difference] if self.difference else [])]

    @property
    def modes(self) -> list[Mode]:
        """Those in which the thread was captured, the verdict's first."""
        return [picture.mode for picture in self.flames]


def suspected(result: Result, captures: Sequence[Capture], choice: Choice, places: Sequence[str]) -> Result:
    """The result with the share of each place that was named."""
    if not places:
        return result
    from layers.layer2_stacks.suspect import Place, with_suspects
    from layers.layer2_stacks.weigh import weigh

    return with_suspects(result, weigh(captures, choice), [Place(text) for text in places])


def draw(
    captures: Sequence[Capture], before: Sequence[Capture], choice: Choice, result: Result, wanted: Exports
) -> Drawn:
    """The pictures of what was judged."""
    from layers.layer2_stacks.weigh import weigh
    from layers.layer2_stacks.words import Word
    from reports.stack_pictures import difference_picture, flame_pictures

    weighed, void = weigh(captures, choice), result.verdict.word == Word.VOID
    flames = tuple(flame_pictures(weighed, all_threads=wanted.all_threads, void=void))
    difference = difference_picture(weigh(before), weighed, void=void) if before else None
    return Drawn(weighed, flames, difference)


def kept_pictures(result: Result, drawn: Drawn, folder: Path) -> Result:
    """Put the pictures into the investigation; the result names them."""
    from layers.evidence.artifacts import describe_artifact
    from layers.evidence.store import ARTIFACTS, Investigation

    entries = []
    with Investigation.open(folder) as investigation:
        for picture in drawn.pictures:
            path = investigation.new_artifact(f"layer2-{picture.kind}-{picture.mode}.svg")
            _write(path, picture.svg)
            file = f"{ARTIFACTS}/{path.name}"
            told = {"kind": picture.kind, "mode": str(picture.mode), "scope": picture.scope}
            entries.append(
                {**told, "n": picture.ticks, "file": file, "sha256": describe_artifact(path).sha256}
            )
    return replace(result, sections={**result.sections, "pictures": entries})


def write_exports(wanted: Exports, drawn: Drawn) -> None:
    """Write what was asked for, and say where; UsageError for the difference of two sides of which there is
    none."""
    if not drawn.flames and wanted.any:
        say("no picture and no export: every capture is void")
        return
    if wanted.flame:
        for picture in drawn.flames:
            _say_written(_beside(wanted.flame, picture.mode, drawn), picture.svg)
    for path, text in ((wanted.speedscope, _speedscope), (wanted.folded, _folded)):
        if path is not None:
            for mode, captures in _by_mode(drawn):
                _say_written(_beside(path, mode, drawn), text(captures))
    if wanted.difference:
        if drawn.difference is None:
            raise UsageError("--difference: the two sides do not compare, the result says why")
        _say_written(wanted.difference, drawn.difference.svg)


def show_icicles(wanted: Exports, drawn: Drawn) -> None:
    """Print the tree of each mode, where it was asked for."""
    from reports.flame_svg import QUESTIONS
    from reports.icicle import icicle
    from reports.stack_pictures import trees

    for tree in trees(drawn.weighed, all_threads=wanted.all_threads) if wanted.icicle else []:
        output.line()
        output.line(QUESTIONS[tree.mode])
        for text in icicle(tree, output.width()).splitlines():
            output.line(text)


def _by_mode(drawn: Drawn) -> Iterator[tuple[Mode, list[RecordedStacks]]]:
    for mode in drawn.modes:
        yield mode, [c.capture.recorded for c in drawn.weighed.sound if c.mode is mode]


def _beside(path: Path, mode: Mode, drawn: Drawn) -> Path:
    """The path itself for the first mode, `NAME-MODE` for the others."""
    return path if mode is drawn.modes[0] else _named(path, mode)


def _named(path: Path, mode: Mode) -> Path:
    return path.with_name(f"{path.stem}-{mode}{path.suffix}")


def _speedscope(captures: Sequence[RecordedStacks]) -> str:
    from reports.speedscope import speedscope_document

    names = ", ".join(dict.fromkeys(Path(capture.path).name for capture in captures))
    return json.dumps(speedscope_document(captures, names, f"perfkit {__version__}"))


def _folded(captures: Sequence[RecordedStacks]) -> str:
    from reports.folded import folded

    return folded(captures)


def _say_written(path: Path, text: str) -> None:
    _write(path, text)
    say(f"wrote {path}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8", "backslashreplace")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}: check the folder and its space") from error
