"""Every method that measured a card beside the others, and what each pair of them says of one another.

Methods that differ are explained and never averaged: which of them is blind, and to what.
"""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import exact_pct, time_text
from layers.layer1_gpu_busy.document_entries import MethodEntry, MethodsCompared
from reports.layer1_document import Layer1Document
from reports.layer1_subject import Artifacts
from reports.model import Basis, Block, Cell, Column, Paragraph, Source, Table

COLUMNS = (
    *(Column("method"), Column("card"), Column("measures")),
    *(Column(title, numeric=True) for title in ("value", "n", "window")),
    Column("from"),
)
LABELS = {False: "Differ", True: "Agree", None: "Beside each other"}
"""By what a pair says, in the order in which the pairs stand."""
METHOD = "each method by its own definition, over its own window"


def method_blocks(document: Layer1Document, artifacts: Artifacts) -> Iterator[Block]:
    """The table of methods, what they measure, and the pairs that say something, differences first."""
    files = tuple(dict.fromkeys(artifacts(method.source) for method in document.methods))
    basis = Basis(len(document.methods), "methods", METHOD, files)
    rows = tuple(_row(method, artifacts) for method in document.methods)
    yield Table("Methods beside each other", COLUMNS, rows, basis)
    meanings = dict.fromkeys(f"{method.measures}: {method.means}" for method in document.methods)
    yield Paragraph("What they measure", "; ".join(meanings))
    for pair in _told(document):
        found = tuple(dict.fromkeys(artifacts(method.source) for method in (pair.a, pair.b)))
        yield Paragraph(LABELS[pair.agree], _text(pair), Basis(pair.b.n, pair.b.n_unit, METHOD, found))


def _row(method: MethodEntry, artifacts: Artifacts) -> tuple[Cell, ...]:
    window = "not known" if method.window_us is None else time_text(method.window_us * 1e3)
    n = f"{method.n:,} {method.n_unit}"
    source = Source(artifacts(method.source))
    return method.method, method.card, method.measures, _value(method), n, window, source


def _value(method: MethodEntry) -> str:
    """A trace answers with a band: samplers count kernels and leave out copies."""
    if method.kernel_time_share is None:
        return exact_pct(method.share)
    return f"{exact_pct(method.share)} (kernels {exact_pct(method.kernel_time_share)})"


def _told(document: Layer1Document) -> list[MethodsCompared]:
    """One of each kind: eight cards say the same eight times."""
    kinds: dict[tuple[bool | None, str, str, str], MethodsCompared] = {}
    for c in document.comparisons:
        kinds.setdefault((c.agree, c.a.measures, c.b.measures, c.why), c)
    return sorted(kinds.values(), key=lambda c: list(LABELS).index(c.agree))


def _text(c: MethodsCompared) -> str:
    sides = " and ".join(f"{m.measures} of {m.method} {exact_pct(m.share)}" for m in (c.a, c.b))
    return f"{c.a.card}, {c.times}: {sides}: {c.why}"
