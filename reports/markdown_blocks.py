"""The blocks of a report's model as Markdown: tables, figures, paragraphs, and what their numbers rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.wording import exact_pct
from reports.markdown import code, code_block, escape, image, table
from reports.model import Basis, Block, Cell, Computed, Figure, Heading, Name, Paragraph, Source, Table

FigurePath = Callable[[Figure], str]
"""Where a figure lies, seen from the report's folder; empty where none was drawn."""

ARTIFACTS = "Commands and artifacts"
ARTIFACTS_ANCHOR = "#commands-and-artifacts"
LISTED = 3
"""Artifacts that are named one by one."""


@dataclass(frozen=True, slots=True)
class BlockRenderer:
    """Knows the labels of the artifacts, the numbers of the figures, and where these lie."""

    labels: Mapping[Artifact, str]
    numbers: Mapping[str, int]
    path_of: FigurePath

    def render(self, block: Block) -> str:
        """One block, with an empty line after it."""
        match block:
            case Heading():
                return f"#### {escape(block.text)}\n"
            case Paragraph():
                return self._paragraph(block)
            case Table():
                return self._table(block)
            case Figure():
                return self._figure(block)

    def reference(self, artifact: Artifact) -> str:
        """A link to the artifact's path and hash."""
        return f"[{self.labels[artifact]}]({ARTIFACTS_ANCHOR})"

    def references(self, artifacts: Sequence[Artifact]) -> str:
        """Links to several; a long row of neighbours as its first and last."""
        all_labels = list(self.labels)
        places = [all_labels.index(artifact) for artifact in artifacts]
        if len(places) > LISTED and places == list(range(places[0], places[-1] + 1)):
            return f"{self.reference(artifacts[0])} to {self.reference(artifacts[-1])}"
        return ", ".join(map(self.reference, artifacts))

    def basis(self, basis: Basis | Computed) -> str:
        """What numbers rest on, in one line."""
        if isinstance(basis, Computed):
            return escape(basis.how)
        where = self.references(basis.artifacts)
        return f"n = {n_text(basis.n, basis.n_unit)}; {escape(basis.method)}; {where}"

    def evidence(self, measurements: Iterable[Measurement]) -> str:
        """Measurements with their n and where they were read; those that share both stand together."""
        groups = groupby(measurements, key=lambda m: (m.n, m.n_unit, m.artifact))
        return "<br>".join(self._same_basis(list(alike)) for _, alike in groups)

    def _same_basis(self, alike: Sequence[Measurement]) -> str:
        first = alike[0]
        source = f"; {self.reference(first.artifact)}" if first.artifact else ""
        values = ", ".join(f"{escape(m.name)} {value_text(m)}" for m in alike)
        return f"{values} (n = {n_text(first.n, first.n_unit)}{source})"

    def _paragraph(self, block: Paragraph) -> str:
        basis = f" *({self.basis(block.basis)})*" if block.basis else ""
        text = f"**{escape(block.label)}.** {sentence(block.text)}{basis}\n"
        return f"{text}\n{code_block(block.command)}" if block.command else text

    def _table(self, block: Table) -> str:
        headers = [escape(f"{c.title} ({c.unit})" if c.unit else c.title) for c in block.columns]
        right = [number for number, column in enumerate(block.columns) if column.numeric]
        rows = [[self._cell(cell) for cell in row] for row in block.rows]
        return f"**{escape(block.title)}.** *{self.basis(block.basis)}*\n\n{table(headers, rows, right)}"

    def _cell(self, cell: Cell) -> str:
        match cell:
            case Name():
                return code(cell.text) or "(no name)"
            case Source():
                return self.reference(cell.artifact)
            case str():
                return escape(cell)

    def _figure(self, block: Figure) -> str:
        path = self.path_of(block)
        if not path:
            return f"*No figure: {escape(block.title)} (--no-figures).*\n"
        caption = f"**Figure {self.numbers[block.name]}. {escape(block.title)}**, {escape(block.about)}. "
        read = f"{escape(block.caption)} *{self.basis(block.basis)}*"
        return f"{image(block.alternative, path)}\n\n{caption}{read}\n"


def value_text(measurement: Measurement) -> str:
    """A value with its unit; shares as percent."""
    if measurement.unit == "share":
        return exact_pct(measurement.value)
    return f"{measurement.value:,.4g} {escape(measurement.unit)}"


def sentence(text: str) -> str:
    """Prose with a capital at its begin."""
    return escape(text[:1].upper() + text[1:])


def n_text(n: int, plural: str) -> str:
    """`61 device operations`, `1 copy`: n with what it counts, which is given in the plural."""
    return f"{n:,} {escape(_singular(plural) if n == 1 else plural)}"


def _singular(plural: str) -> str:
    if plural.endswith("ies"):
        return f"{plural[:-3]}y"
    return plural[:-2] if plural.endswith("ches") else plural.removesuffix("s")
