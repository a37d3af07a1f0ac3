"""The rest of a device's anatomy as tables: copies, communication, ranges, operators, batches, symptoms."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import time_text
from layers.layer1_gpu_busy.model import BatchRow, CopyRow, OperatorRow, Overlap, PhaseRow, Symptom
from reports.layer1_anatomy import NAME_CHARACTERS
from reports.layer1_document import Anatomy
from reports.layer1_subject import Subject
from reports.markdown import shorten
from reports.model import Block, Cell, Column, Name, Paragraph, Table

TOP_RANGES = 10
TOP_OPERATORS = 10

COPY_COLUMNS = (
    *(Column("direction"), Column("n", "copies", numeric=True), Column("time", numeric=True)),
    *(Column("not hidden by a kernel", numeric=True), Column("size", numeric=True)),
)
RANGE_COLUMNS = (
    *(Column("range"), Column("n", "ranges", numeric=True)),
    *(Column(title, numeric=True) for title in ("host median", "host sum", "device busy")),
    Column("launched", "device operations", numeric=True),
)
OPERATOR_COLUMNS = (
    *(Column("operator"), Column("median", "calls a step", numeric=True)),
    *(Column("most", "calls a step", numeric=True), Column("grows with the batch")),
)
BATCH_COLUMNS = (
    *(Column("kind"), Column("batch size", "requests", numeric=True), Column("n", "steps", numeric=True)),
    *(Column("step median", numeric=True), Column("busy median", numeric=True)),
    Column("median", "device operations", numeric=True),
)
SYMPTOM_COLUMNS = (Column("symptom"), Column("there"), Column("what was seen"), Column("threshold"))


def table_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """Each of them that the trace has."""
    if anatomy.copies:
        yield _copies(subject, anatomy.copies)
    if anatomy.overlap is not None:
        yield _communication(subject, anatomy.overlap)
    if anatomy.phases:
        yield _ranges(subject, anatomy.phases[:TOP_RANGES])
    if anatomy.operators and anatomy.steps is not None and anatomy.steps.steps:
        yield _operators(subject, anatomy.operators, len(anatomy.steps.steps))
    if anatomy.batches:
        yield _batches(subject, anatomy.batches)
    if told := [symptom for symptom in anatomy.symptoms if symptom.present is not None]:
        yield _symptoms(subject, told)


def _copies(subject: Subject, copies: tuple[CopyRow, ...]) -> Table:
    basis = subject.basis(sum(c.n for c in copies), "copies", "union of copies by direction")
    return Table("Copies", COPY_COLUMNS, tuple(map(_copy_row, copies)), basis)


def _copy_row(copy: CopyRow) -> tuple[Cell, ...]:
    size = "not recorded" if copy.nbytes is None else f"{copy.nbytes:,} B"
    return copy.direction, f"{copy.n:,}", time_text(copy.total_ns), time_text(copy.exposed_ns), size


def _communication(subject: Subject, overlap: Overlap) -> Paragraph:
    exposed = time_text(overlap.exposed_communication_ns)
    text = f"{time_text(overlap.communication_ns)} in all, of which no computation hides {exposed}"
    method = "union of communication kernels, told by name, and the part of it outside other kernels"
    basis = subject.basis(overlap.communication_ops, "communication kernels", method)
    return Paragraph("Communication", text, basis)


def _ranges(subject: Subject, ranges: tuple[PhaseRow, ...]) -> Table:
    basis = subject.basis(sum(r.n for r in ranges), "ranges", "named ranges and what was launched in them")
    return Table(
        "Named ranges (they may lie in each other)", RANGE_COLUMNS, tuple(map(_range_row, ranges)), basis
    )


def _range_row(phase: PhaseRow) -> tuple[Cell, ...]:
    times = (phase.host_p50_ns, phase.host_total_ns, phase.device_busy_ns)
    return _name(phase.name), f"{phase.n:,}", *map(time_text, times), f"{phase.device_ops:,}"


def _operators(subject: Subject, operators: tuple[OperatorRow, ...], steps: int) -> Table:
    """Those that grow with the batch first."""
    shown = sorted(operators, key=lambda operator: not operator.grows_with_batch)[:TOP_OPERATORS]
    basis = subject.basis(steps, "steps", "operator calls inside each step")
    return Table("Operators per step", OPERATOR_COLUMNS, tuple(map(_operator_row, shown)), basis)


def _operator_row(operator: OperatorRow) -> tuple[Cell, ...]:
    slope = operator.slope_per_item
    growth = "yes" if slope is None else f"yes: {slope:.2g} calls a request"
    counts = (f"{operator.per_step_median:,.0f}", f"{operator.per_step_max:,}")
    return _name(operator.name), *counts, growth if operator.grows_with_batch else "no"


def _batches(subject: Subject, batches: tuple[BatchRow, ...]) -> Table:
    basis = subject.basis(sum(b.steps for b in batches), "steps", "device time of annotated steps")
    return Table("Steps by batch size", BATCH_COLUMNS, tuple(map(_batch_row, batches)), basis)


def _batch_row(batch: BatchRow) -> tuple[Cell, ...]:
    counts = (str(batch.batch_size), f"{batch.steps:,}")
    times = (time_text(batch.p50_ns), time_text(batch.busy_p50_ns))
    return Name(batch.kind), *counts, *times, f"{batch.operations_p50:,.0f}"


def _symptoms(subject: Subject, told: list[Symptom]) -> Table:
    """Those that are there first."""
    told = sorted(told, key=lambda symptom: not symptom.present)
    rows = tuple((f"{s.code} {s.title}", "yes" if s.present else "no", s.numbers, s.threshold) for s in told)
    basis = subject.basis(len(told), "symptoms", "the symptom catalogue")
    return Table("Symptoms that the trace can show", SYMPTOM_COLUMNS, rows, basis)


def _name(text: str) -> Name:
    return Name(shorten(text, NAME_CHARACTERS))
