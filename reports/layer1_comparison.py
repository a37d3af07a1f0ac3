"""A trace against an earlier one, as blocks of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from layers.evidence.wording import time_text
from layers.layer1_gpu_busy.compare import WHOLE_WINDOW, ChangeRow, Comparison, time_rows
from layers.layer1_gpu_busy.compare_files import NotCompared
from layers.layer1_gpu_busy.kernel_names import distinct_names
from reports.layer1_subject import Subject
from reports.model import Block, Column, Heading, Name, Paragraph, Table

CHANGES_SHOWN = 12
NAME_CHARACTERS = 70

NO_HASH = "the record names the earlier trace and does not hold its hash"


def comparison_blocks(subject: Subject, c: Comparison) -> list[Block]:
    """Both sides per unit, the kernels that changed most, and what the comparison cannot say."""
    changed = _changes(c.kernels[:CHANGES_SHOWN])
    method = f"mean per {c.unit}; the earlier trace has n = {c.a.units:,}"
    basis = subject.basis(c.b.units, "windows" if c.unit == WHOLE_WINDOW else "steps", method)
    return [
        Heading(f"Compared per {c.unit}: {c.b.label} against {c.a.label}"),
        *(Paragraph("Beware", text, basis) for text in c.unlike),
        *(Paragraph("Only hints", text, basis) for text in c.weakened),
        Table("Busy and idle", _columns(c), _times(c), basis),
        Table("Kernels, largest change in time first", _change_columns(), changed, basis),
        Paragraph("Note", "; ".join([*c.caveats, NO_HASH]), basis),
    ]


def not_compared_block(subject: Subject, n: NotCompared) -> Paragraph:
    """Why there is no comparison, and what it would take."""
    basis = subject.basis(subject.device.events, "device operations", "guards of both traces")
    return Paragraph(f"Not compared with {PurePath(n.earlier).name}", f"Why: {'; '.join(n.why)}", basis)


def _columns(c: Comparison) -> tuple[Column, ...]:
    titles = (f"before (n = {c.a.units:,})", f"after (n = {c.b.units:,})", "after over before")
    return (Column(f"per {c.unit}"), *(Column(title, numeric=True) for title in titles))


def _times(c: Comparison) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (what, time_text(a), time_text(b), f"{b / a:.2f}x" if a else "no base") for what, a, b in time_rows(c)
    )


def _change_columns() -> tuple[Column, ...]:
    times = (Column("before", numeric=True), Column("after", numeric=True))
    counts = (Column("n before", "operations", numeric=True), Column("n after", "operations", numeric=True))
    return (Column("kernel"), Column("change"), *times, *counts)


def _changes(rows: Sequence[ChangeRow]) -> tuple[tuple[str | Name, ...], ...]:
    names = distinct_names([row.name for row in rows], NAME_CHARACTERS)
    return tuple(_change(Name(name), row) for name, row in zip(names, rows, strict=True))


def _change(name: Name, row: ChangeRow) -> tuple[str | Name, ...]:
    times = (time_text(row.a_ns), time_text(row.b_ns))
    return name, str(row.change), *times, f"{row.a_count:,.1f}", f"{row.b_count:,.1f}"
