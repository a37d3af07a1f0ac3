"""Rules that every report keeps, checked before one is written.

No measured number without n, unit, method and artifact; no finding without evidence; no layer without a row,
and no layer that was not run without a reason. A fault found here is a fault of perfkit, not of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from layers.evidence.finding import Finding
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.verdict import Exit
from reports.layers_walked import KNOWN
from reports.model import (
    Basis,
    Block,
    Column,
    Computed,
    Figure,
    FindingRow,
    Folded,
    Layer,
    Paragraph,
    Report,
    RunVerdict,
    Table,
)

MEASURED = re.compile(r"\d\s?(%|ns\b|µs|ms\b|s\b|x\b)|\bmedian \d")
"""A number with the unit of something that was measured."""

BARE_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+")
SHA256 = re.compile(r"[0-9a-f]{64}")


def faults(report: Report) -> list[str]:
    """What breaks the rules, in words; empty for a sound report."""
    known = set(report.artifacts)
    counting = {verdict.run_id for verdict in report.verdicts}
    of_counting = [raw.measurement for raw in report.raw_values if raw.run_id in counting]
    return [
        *(text for verdict in report.verdicts for text in _verdict(verdict, known)),
        *_layers(report.layers),
        *(text for layer in report.layers for text in _layer(layer, known)),
        *(text for row in (*report.findings, *report.negative) for text in _row(row, known)),
        *(text for m in of_counting for text in _measurement(m, known)),
        *(f"artifact {a.path}: no sha256" for a in report.artifacts if not SHA256.fullmatch(a.sha256)),
    ]


def require_sound(report: Report) -> None:
    """RuntimeError, a fault of perfkit itself, where the report breaks a rule."""
    if found := faults(report):
        raise RuntimeError(f"the report breaks its own rules, so it was not written: {'; '.join(found)}")


def _verdict(verdict: RunVerdict, known: set[Artifact]) -> Iterator[str]:
    if verdict.verdict.exit_code is Exit.INVALID:
        return
    yield from _basis(f"the verdict of run {verdict.run_id}", verdict.basis, known)
    if verdict.strength is None or not verdict.rule:
        yield f"the verdict of run {verdict.run_id}: no strength, or no rule that gave it"


def _layers(layers: Iterable[Layer]) -> Iterator[str]:
    titles = [layer.title for layer in layers]
    for known in KNOWN:
        if titles.count(known.title) != 1:
            yield f"{known.title}: {titles.count(known.title)} rows instead of one"


def _layer(layer: Layer, known: set[Artifact]) -> Iterator[str]:
    if not layer.blocks and not layer.why_not_run:
        yield f"{layer.title}: no content, and no reason why it was not run"
    if layer.blocks and not (layer.method and layer.strength):
        yield f"{layer.title}: no method, or no strength"
    yield from (text for block in layer.blocks for text in _block(block, known))


def _block(block: Block, known: set[Artifact], *, based: bool = False) -> Iterator[str]:
    """`based`: the sentence shares the basis of what it is folded into."""
    match block:
        case Table():
            yield from _basis(block.title, block.basis, known)
            yield from _cells(block)
        case Figure():
            yield from _basis(block.title, block.basis, known)
        case Paragraph() if block.basis or (MEASURED.search(block.plain) and not based):
            yield from _basis(block.label, block.basis, known)
        case Folded():
            if block.basis is not None:
                yield from _basis(block.title, block.basis, known)
            for inner in block.blocks:
                yield from _block(inner, known, based=block.basis is not None)


def _cells(table: Table) -> Iterator[str]:
    for row in table.rows:
        if len(row) != len(table.columns):
            yield f"{table.title}: a row of {len(row)} cells under {len(table.columns)} columns"
    for column, cells in zip(table.columns, zip(*table.rows, strict=False), strict=False):
        if any(isinstance(cell, str) and _lacks_unit(column, cell) for cell in cells):
            yield f"{table.title}, {column.title}: a number without a unit"


def _lacks_unit(column: Column, cell: str) -> bool:
    return not column.unit and BARE_NUMBER.fullmatch(cell) is not None


def _row(row: FindingRow, known: set[Artifact]) -> Iterator[str]:
    for finding in row.findings:
        yield from _finding(row.number, finding, known)


def _finding(number: int, finding: Finding, known: set[Artifact]) -> Iterator[str]:
    if not finding.measurements and not (finding.evidence and finding.artifacts):
        yield f"finding {number}: no evidence"
    if not known.issuperset(finding.artifacts):
        yield f"finding {number}: evidence from a file that is not listed"
    if not finding.rule or not finding.recommendation:
        yield f"finding {number}: no rule, or no recommendation"
    for measurement in finding.measurements:
        for text in _measurement(measurement, known):
            yield f"finding {number}: {text}"


def _measurement(m: Measurement, known: set[Artifact]) -> Iterator[str]:
    if not (m.unit and m.n_unit and m.method):
        yield f"{m.name} {m.scope}: no unit, no unit of n, or no method"
    if m.artifact is None or m.artifact not in known:
        yield f"{m.name} {m.scope}: no artifact"


def _basis(what: str, basis: Basis | Computed | None, known: set[Artifact]) -> Iterator[str]:
    if isinstance(basis, Computed):
        if not basis.how:
            yield f"{what}: calculated, and it does not say how"
    elif basis is None or basis.n < 1 or not basis.n_unit:
        yield f"{what}: no n"
    elif not basis.method or not basis.artifacts or not known.issuperset(basis.artifacts):
        yield f"{what}: no method, or no artifact"
