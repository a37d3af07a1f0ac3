"""`dcgmi dmon`: one row per entity and pass, in four layouts that the header tells apart.

    DCGM        header            cells
    to 2.3      "# Entity  A  B"  right-aligned, parted by blanks
    2.4 to 3.3  "#Entity   A"     left-aligned under the header, entity 10 wide; a value that is not
                                  returned is skipped, and what follows stands under the wrong name
    4.0 to 4.4  "#Entity    A"    the same, 11 wide; a field that an entity has not is an empty cell
    from 4.5    "#Entity         A"  the same, 16 wide

So cells are cut by the header's offsets where empty ones keep their place, and a short row of the second
layout is no row at all. Rows carry no time: whatever stands before the header's `#` and reads as one (dcgmi
dmon | ts) is taken. The first rows of profiling fields are N/A: the host engine needs two readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parsers.dcgm_fields import BY_SHORT_NAME, DcgmField, is_blank
from parsers.sampled_cells import Malformed, read_number
from parsers.sampling import Sampling
from parsers.series_model import NO_DEVICE

SOURCE = "dcgm"
HEADER = re.compile(r"#( ?)Entity\b")
ENTITY = re.compile(r"\s*(GPU-CI|GPU-I|GPU)\s+(\d{1,6})\b(?!\s+LINK)", re.ASCII)
OTHER_ENTITY = re.compile(r"\s*(vGPU|Switch|SW|CPU|LINK|CX|UNKNOWN|GPU\s+\d+\s+LINK)\b")
UNIT_ROW = re.compile(r"\s*I[Dd]\b")
STOPPED = "dmon was stopped"
KEEPS_EMPTY_CELLS_FROM_WIDTH = 11
"""Width of the entity column from DCGM 4.0 on; it was 10 before."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows under one header are cut. `starts` are offsets behind the entity's beginning `at`."""

    at: int
    names: tuple[str, ...]
    starts: tuple[int, ...]
    keeps_empty_cells: bool

    def cells(self, row: str) -> Sequence[str] | None:
        """The cells of a row (without what stands before the entity); None where they cannot be told
        apart."""
        if self.keeps_empty_cells:
            ends = (*self.starts[1:], len(row))
            return [row[start:end].strip() for start, end in zip(self.starts, ends, strict=True)]
        found = ENTITY.match(row)
        cells = row[found.end() :].split() if found else []
        return cells if len(cells) == len(self.names) else None


def read_layout(text: str) -> Layout | None:
    """The layout that this header announces; None where the line is no header."""
    found = HEADER.search(text)
    if found is None:
        return None
    columns = list(re.finditer(r"\S+", text[found.end() :]))
    offset = found.end() - found.start()
    starts = tuple(offset + column.start() for column in columns)
    left_aligned = not found[1]
    return Layout(
        at=found.start(),
        names=tuple(column[0] for column in columns),
        starts=starts,
        keeps_empty_cells=left_aligned and bool(starts) and starts[0] >= KEEPS_EMPTY_CELLS_FROM_WIDTH,
    )


def read_dmon(texts: Iterable[str], sampling: Sampling) -> str:
    """Read all rows into `sampling`; returns the source."""
    layout: Layout | None = None
    gpu = NO_DEVICE
    for text in texts:
        if (found := read_layout(text)) is not None:
            layout = found
            continue
        row = text[layout.at :] if layout else text
        entity = ENTITY.match(row)
        if layout is None or entity is None:
            _other_line(text, row, sampling)
            continue
        if entity[1] == "GPU":
            gpu = int(entity[2])
        # Instances follow their GPU only in the layouts that sort them; before, their rows name no parent.
        parent = gpu if layout.keeps_empty_cells or entity[1] == "GPU" else NO_DEVICE
        _add_row(layout, text, f"{entity[1].lower()} {entity[2]}", parent, sampling)
    return SOURCE


def _other_line(text: str, row: str, sampling: Sampling) -> None:
    if not row.strip() or UNIT_ROW.match(row) or OTHER_ENTITY.match(row) or STOPPED in text:
        return
    sampling.note(text)


def _add_row(layout: Layout, text: str, entity: str, device: int, sampling: Sampling) -> None:
    cells = layout.cells(text[layout.at :])
    at_ns = sampling.time(text[: layout.at]) if layout.at else None
    if cells is None:
        sampling.lose("a row with fewer values than columns: which is missing cannot be told", len(text))
        cells = [""] * len(layout.names)
    for name, cell in dict(zip(layout.names, cells, strict=True)).items():
        field = BY_SHORT_NAME.get(name)
        if field is not None:
            _add_cell(field, cell, entity, device, at_ns, sampling)


def _add_cell(
    field: DcgmField, cell: str, entity: str, device: int, at_ns: int | None, sampling: Sampling
) -> None:
    column = sampling.column(field.metric, field.short_name, entity, device)
    try:
        value = read_number(cell)
    except Malformed:
        sampling.lose_cell(column, cell)
        return
    known = value is not None and not is_blank(value)
    column.add(value * field.scale if known and value is not None else None, at_ns, sampling.lines.number)
