"""The rest of a device's anatomy: copies, named ranges, operators, steps by batch size."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import cut_middle, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy
from layers.layer1_gpu_busy.model import BatchRow, CopyRow, OperatorRow, PhaseRow
from reports.layer1_subject import Subject
from reports.model import Block, Cell, Column, Name, Paragraph, Table

TOP_RANGES = 6
TOP_OPERATORS = 6
TOP_BATCHES = 12
NAME_CHARACTERS = 70

BATCH_COLUMNS = (
    *(Column("kind"), Column("batch size", "requests", numeric=True), Column("n", "steps", numeric=True)),
    *(Column("step median", numeric=True), Column("busy median", numeric=True)),
    Column("median", "device operations", numeric=True),
)


def detail_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """Each of them that the trace has."""
    if anatomy.copies:
        yield _copies(subject, anatomy.copies)
    if anatomy.phases:
        yield _ranges(subject, anatomy.phases[:TOP_RANGES])
    if anatomy.operators and anatomy.steps is not None and anatomy.steps.steps:
        yield _operators(subject, anatomy, len(anatomy.steps.working))
    if anatomy.batches:
        yield _batches(subject, anatomy.batches[:TOP_BATCHES])


def _copies(subject: Subject, copies: tuple[CopyRow, ...]) -> Paragraph:
    basis = subject.basis(sum(c.n for c in copies), "copies", "union of copies by direction")
    return Paragraph("Copies", "; ".join(map(_copy, copies)), basis)


def _copy(copy: CopyRow) -> str:
    size = "" if copy.nbytes is None else f", {copy.nbytes:,} B"
    exposed = f"{time_text(copy.exposed_ns)} of it beside no kernel"
    return f"{copy.direction} n = {copy.n:,}, {time_text(copy.total_ns)}, {exposed}{size}"


def _ranges(subject: Subject, ranges: tuple[PhaseRow, ...]) -> Paragraph:
    basis = subject.basis(sum(r.n for r in ranges), "ranges", "named ranges and what was launched in them")
    parts = [part for phase in ranges for part in (_name(phase.name), f" {_range(phase)}; ")]
    parts[-1] = f" {_range(ranges[-1])}"
    return Paragraph("Named ranges, which may lie in each other", tuple(parts), basis)


def _range(phase: PhaseRow) -> str:
    host = f"n = {phase.n:,}, host {time_text(phase.host_total_ns)}"
    return f"{host}, device busy {time_text(phase.device_busy_ns)} with {_launched(phase)}"


def _launched(phase: PhaseRow) -> str:
    """The range's own work, and apart from it what other threads launched meanwhile."""
    own, meanwhile = f"{phase.device_ops:,} operations", phase.meanwhile_ops
    if not meanwhile:
        return own
    busy = time_text(phase.meanwhile_busy_ns)
    return f"{own} of its own thread; other threads launched {meanwhile:,} meanwhile, busy {busy}"


def _operators(subject: Subject, anatomy: Anatomy, steps: int) -> Paragraph:
    """Those whose number grows with the batch, or else the most frequent."""
    basis = subject.basis(steps, "steps", "operator calls inside each step")
    growing = [operator for operator in anatomy.operators if operator.grows_with_batch]
    shown = (growing or anatomy.operators)[:TOP_OPERATORS]
    none_grows = "none grows with the batch; most calls per step, median: "
    said = none_grows if anatomy.batches else "most calls per step, median: "
    parts = [part for o in shown for part in (_name(o.name), f" {_calls(o)}, ")]
    parts[-1] = f" {_calls(shown[-1])}"
    return Paragraph("Operators", ("these grow with the batch: " if growing else said, *parts), basis)


def _calls(operator: OperatorRow) -> str:
    slope = operator.slope_per_item
    growth = "" if slope is None else f" ({slope:.2g} more for each request)"
    return f"{operator.per_step_median:,.0f}{growth}"


def _batches(subject: Subject, batches: tuple[BatchRow, ...]) -> Table:
    basis = subject.basis(sum(b.steps for b in batches), "steps", "device time of annotated steps")
    return Table("Steps by batch size", BATCH_COLUMNS, tuple(map(_batch_row, batches)), basis)


def _batch_row(batch: BatchRow) -> tuple[Cell, ...]:
    counts = (str(batch.batch_size), f"{batch.steps:,}")
    times = (time_text(batch.p50_ns), time_text(batch.busy_p50_ns))
    return Name(batch.kind), *counts, *times, f"{batch.operations_p50:,.0f}"


def _name(text: str) -> Name:
    return Name(cut_middle(text, NAME_CHARACTERS))
