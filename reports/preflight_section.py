"""Pre-flight as a layer of a report: what its latest run concluded, which checks fired, what it recorded."""

from __future__ import annotations

from layers.evidence.store_rows import Run
from layers.evidence.wording import counted
from layers.preflight.snapshot import from_document
from reports.history import verdict_of
from reports.model import Computed, Layer, Paragraph

HOW = "The machine, its GPUs, packages and processes are listed before anything is measured."
NO_STRENGTH = "none: a record of the environment is no finding"


def preflight_layer(title: str, question: str, run: Run) -> Layer:
    """The verdict of one run with its checks; the document of the run has every fact."""
    verdict = verdict_of(run)
    how = Computed(f"perfkit preflight, run {run.id}; no measurement of the service")
    blocks = [Paragraph(verdict.headline, verdict.because, how)]
    if fired := [f"{g['code']} {g['name']}: {g['message']}" for g in run.document["guards"]]:
        blocks.append(Paragraph("Checks that fired", "; ".join(fired), how))
    return Layer(title, question, "", HOW, tuple(blocks), NO_STRENGTH)


def baseline_text(run: Run) -> str:
    """How much of the environment a run recorded."""
    facts = [section.facts for section in from_document(run.document, f"run {run.id}").sections]
    return f"{counted(sum(map(len, facts)), 'fact')} recorded by perfkit preflight (run {run.id})"
