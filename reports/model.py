"""A findings report as data: what `build.py` makes of an investigation, and what the renderers show.

All text is plain: a renderer escapes it. A table, a figure and a paragraph with numbers in it carry a `Basis`
(n, method, artifacts), so that every number leads to the bytes it was read from; `lint.py` refuses a report
in which one does not. The order of the fields of `Report` is the order of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from layers.evidence.finding import Finding, Strength
from layers.evidence.guard import Effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.store_rows import Call, StoredGuard
from layers.evidence.verdict import Verdict
from reports.figure_data import FigureData


@dataclass(frozen=True, slots=True)
class Basis:
    """What numbers rest on: how many of what, measured how, read from which files."""

    n: int
    n_unit: str
    method: str
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """In the place of a basis: numbers that were calculated and not measured, and from what."""

    how: str


@dataclass(frozen=True, slots=True)
class Name:
    """Text out of a user's file (a kernel, a path, a command), shown letter by letter."""

    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A cell that leads to an artifact."""

    artifact: Artifact


Cell = str | Name | Source


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `unit` is that of bare numbers in it, empty where the cells hold their units or are words."""

    title: str
    unit: str = ""
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells with one basis. A column called n counts for its row."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of `data`, named for its file. `about` says of what, with n and window; `caption` how to read
    it; `alternative` what it shows, for those who do not see it.
    """

    name: str
    title: str
    about: str
    caption: str
    alternative: str
    data: FigureData
    basis: Basis


Text = str | tuple[str | Name, ...]
"""Prose, which may hold names out of a user's file."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or more under a label, and a command to type (empty: none); `basis` is None where no
    measured number stands in the text.
    """

    label: str
    text: Text
    basis: Basis | Computed | None = None
    command: str = ""

    @property
    def plain(self) -> str:
        """The text without markup."""
        parts = (self.text,) if isinstance(self.text, str) else self.text
        return "".join(part if isinstance(part, str) else part.text for part in parts)


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a part of a layer's section."""

    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks under a title that are shown when asked for; a `basis` is that of all sentences among them."""

    title: str
    blocks: tuple[Block, ...]
    basis: Basis | None = None


Block = Heading | Paragraph | Table | Figure | Folded


def unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks in their order, those that are folded away too."""
    for block in blocks:
        if isinstance(block, Folded):
            yield from unfolded(block.blocks)
        else:
            yield block


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What one run concluded: its verdict, what n is behind it, and how far it carries (None: void).
    `chiefly` says what its least busy device mostly waited for (empty: that was not looked at).
    """

    run_id: int
    what: str
    verdict: Verdict
    chiefly: str
    basis: Basis | None
    strength: Strength | None
    rule: str


@dataclass(frozen=True, slots=True)
class Validity:
    """One guard over the devices that it was asked of: those that it fired on, or (`fired` empty) none."""

    code: str
    name: str
    effect: Effect
    fired: tuple[StoredGuard, ...]
    asked: int


@dataclass(frozen=True, slots=True)
class EnvironmentFact:
    """Something that a run knows of where it ran or was recorded."""

    name: str
    value: str
    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the method: what was found, or why it was not run (empty: it was)."""

    title: str
    question: str
    why_not_run: str
    method: str = ""
    blocks: tuple[Block, ...] = ()
    strength: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A finding in a row: whose it is (empty where all are of one device), and what it says of that."""

    run_id: int
    whose: str
    statement: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class FindingRow:
    """Findings that ask for the same; the first one, on the least busy device, stands for them."""

    number: int
    members: tuple[Member, ...]

    @property
    def first(self) -> Member:
        return self.members[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(member.finding for member in self.members)


@dataclass(frozen=True, slots=True)
class RawValue:
    """One measurement of one run, as it was recorded."""

    run_id: int
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class RunRow:
    """One recorded command. `dropped` says why it is not part of the conclusions (empty: it is)."""

    id: int
    call: Call
    headline: str
    dropped: str
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report."""

    title: str
    verdicts: tuple[RunVerdict, ...]
    validity: tuple[Validity, ...]
    environment: tuple[EnvironmentFact, ...]
    layers: tuple[Layer, ...]
    findings: tuple[FindingRow, ...]
    negative: tuple[FindingRow, ...]
    not_measured: tuple[str, ...]
    not_shown: tuple[str, ...]
    raw_values: tuple[RawValue, ...]
    runs: tuple[RunRow, ...]
    artifacts: tuple[Artifact, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures in their order; their numbers are their places here, from 1."""
        blocks = unfolded(block for layer in self.layers for block in layer.blocks)
        return tuple(block for block in blocks if isinstance(block, Figure))
