"""The blocks of a report's model as Markdown: tables, figures, paragraphs, and what their numbers rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from layers.evidence.finding import Finding
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.wording import exact_pct
from reports.markdown import code, code_block, details, escape, image, inside, table
from reports.model import (
    Basis,
    Block,
    Cell,
    Computed,
    Figure,
    Folded,
    Heading,
    Name,
    Paragraph,
    Source,
    Table,
    Text,
    unfolded,
)

FigurePath = Callable[[Figure], str]
"""Where a figure lies, seen from the report's folder; empty where none was drawn."""
ArtifactPath = Callable[[Artifact], str]
"""Where an artifact lies, seen from there; empty for one that is not in the investigation."""

ARTIFACTS = "Commands and artifacts"
LARGE, HUGE = 1e4, 1e9
"""Between them all digits before the point are shown; others have four."""
LISTED = 2
"""Neighbouring artifacts that are named one by one."""


@dataclass(frozen=True, slots=True)
class BlockRenderer:
    """Knows the labels of the artifacts, the numbers of the figures, and where these lie."""

    labels: Mapping[Artifact, str]
    numbers: Mapping[str, int]
    path_of: FigurePath
    file_of: ArtifactPath

    def render(self, blocks: Iterable[Block]) -> Iterator[str]:
        """The blocks, each with an empty line after it. Files that all numbers under one heading were read
        from are named once, under it.
        """
        for heading, part in _parts(blocks):
            files = _files(part)
            shared = files[0] if len(set(files)) == 1 and len(files) > 1 else ()
            if heading is not None:
                source = (
                    f"*Numbers of this part were read from {self.references(shared)}.*\n" if shared else ""
                )
                yield f"#### {escape(heading.text)}\n{source}"
            yield from self._all(part, shared)

    def _all(self, blocks: Sequence[Block], shared: Sequence[Artifact]) -> Iterator[str]:
        """The blocks of one part; neighbouring paragraphs make one list."""
        for listed, group in groupby(blocks, key=_is_sentence):
            alike = [self._block(block, shared) for block in group]
            if listed and len(alike) > 1:
                yield "".join(f"- {text}" for text in alike)
            else:
                yield from alike

    def _block(self, block: Block, shared: Sequence[Artifact]) -> str:
        match block:
            case Heading():
                raise AssertionError("a heading begins a part")
            case Paragraph():
                return self._paragraph(block, shared)
            case Table():
                return self._table(block, shared)
            case Figure():
                return self._figure(block, shared)
            case Folded():
                basis = f"*{self.basis(block.basis, shared)}*\n\n" if block.basis else ""
                return details(escape(block.title), basis + "\n".join(self._all(block.blocks, shared)))

    def reference(self, artifact: Artifact) -> str:
        """A link to the artifact's path, hash and commands."""
        label = self.labels[artifact]
        return f"[{label}](#{label.lower()})"

    def references(self, artifacts: Sequence[Artifact]) -> str:
        """Links to several; a row of neighbours as its first and last."""
        all_labels = list(self.labels)
        places = [all_labels.index(artifact) for artifact in artifacts]
        rows = groupby(enumerate(places), key=lambda pair: pair[1] - pair[0])
        return ", ".join(self._row([all_labels[place] for _, place in row]) for _, row in rows)

    def _row(self, artifacts: Sequence[Artifact]) -> str:
        links = list(map(self.reference, artifacts))
        return f"{links[0]} to {links[-1]}" if len(links) > LISTED else ", ".join(links)

    def basis(self, basis: Basis | Computed, shared: Sequence[Artifact] = ()) -> str:
        """What numbers rest on, in one line; without the files where they were named before."""
        if isinstance(basis, Computed):
            return escape(basis.how)
        said = f"n = {n_text(basis.n, basis.n_unit)}; {escape(basis.method)}"
        return said if basis.artifacts == shared else f"{said}; {self.references(basis.artifacts)}"

    def evidence(self, finding: Finding) -> str:
        """What was seen, in words, and measurements; those that share n and file stand together."""
        files = self.references(finding.artifacts)
        source = f" ({files})" if files else ""
        seen = [f"{inside(finding.evidence)}{source}"] if finding.evidence else []
        groups = groupby(finding.measurements, key=lambda m: (m.n, m.n_unit, m.artifact))
        return "<br>".join([*seen, *(self._same_basis(list(alike)) for _, alike in groups)])

    def _same_basis(self, alike: Sequence[Measurement]) -> str:
        first = alike[0]
        source = f"; {self.reference(first.artifact)}" if first.artifact else ""
        values = ", ".join(f"{inside(m.name.replace('_', ' '))} {value_text(m)}" for m in alike)
        return f"{values} (n = {n_text(first.n, first.n_unit)}{source})"

    def _paragraph(self, block: Paragraph, shared: Sequence[Artifact]) -> str:
        basis = f" *({self.basis(block.basis, shared)})*" if block.basis else ""
        text = f"**{inside(block.label)}.** {_prose(block.text)}{basis}\n"
        return f"{text}\n{code_block(block.command)}" if block.command else text

    def _table(self, block: Table, shared: Sequence[Artifact]) -> str:
        headers = [
            inside(f"{c.title} ({c.unit})" if c.unit not in ("", c.title) else c.title) for c in block.columns
        ]
        right = [number for number, column in enumerate(block.columns) if column.numeric]
        rows = [[self._cell(cell) for cell in row] for row in block.rows]
        basis = self.basis(block.basis, shared)
        return f"**{escape(block.title)}.** *{basis}*\n\n{table(headers, rows, right)}"

    def _cell(self, cell: Cell) -> str:
        match cell:
            case Name():
                return code(cell.text) or "(no name)"
            case Source():
                return self.reference(cell.artifact)
            case str():
                return inside(cell)

    def _figure(self, block: Figure, shared: Sequence[Artifact]) -> str:
        """A figure says its n in what it is about; how it was measured stands with the numbers beside it."""
        path = self.path_of(block)
        if not path:
            return f"*No figure: {escape(block.title)} (--no-figures).*\n"
        named = block.basis.artifacts == shared
        source = "" if named else f" *{self.references(block.basis.artifacts)}*"
        caption = f"**Figure {self.numbers[block.name]}. {escape(block.title)}**, {escape(block.about)}. "
        return f"{image(block.alternative, path)}<br>\n{caption}{escape(block.caption)}{source}\n"


def _is_sentence(block: Block) -> bool:
    return isinstance(block, Paragraph) and not block.command


def _parts(blocks: Iterable[Block]) -> Iterator[tuple[Heading | None, list[Block]]]:
    """Each heading with the blocks under it; None where they begin without one."""
    heading: Heading | None = None
    part: list[Block] = []
    for block in blocks:
        if isinstance(block, Heading):
            if part or heading:
                yield heading, part
            heading, part = block, []
        else:
            part.append(block)
    if part or heading:
        yield heading, part


def _files(blocks: Iterable[Block]) -> list[tuple[Artifact, ...]]:
    """The files that each block with numbers was read from."""
    bases = (getattr(block, "basis", None) for block in unfolded(blocks))
    return [basis.artifacts for basis in bases if isinstance(basis, Basis)]


def _prose(text: Text) -> str:
    """A sentence, or one with names in it."""
    if isinstance(text, str):
        return sentence(text)
    first, *rest = text
    said = [sentence(first) if isinstance(first, str) else code(first.text)]
    return "".join([*said, *(code(part.text) if isinstance(part, Name) else inside(part) for part in rest)])


def value_text(measurement: Measurement) -> str:
    """A value with its unit; shares as percent."""
    if measurement.unit == "share":
        return exact_pct(measurement.value)
    value = measurement.value
    shown = f"{value:,.0f}" if LARGE <= abs(value) < HUGE else f"{value:,.4g}"
    return f"{shown} {escape(measurement.unit)}"


def sentence(text: str) -> str:
    """Prose with a capital at its begin, for behind a label."""
    return inside(text[:1].upper() + text[1:])


def n_text(n: int, plural: str) -> str:
    """`61 device operations`, `1 copy`: n with what it counts, which is given in the plural."""
    return f"{n:,} {escape(_singular(plural) if n == 1 else plural)}"


def _singular(plural: str) -> str:
    if plural.endswith("ies"):
        return f"{plural[:-3]}y"
    return plural[:-2] if plural.endswith("ches") else plural.removesuffix("s")
