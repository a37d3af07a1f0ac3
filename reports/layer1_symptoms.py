"""Symptoms of the catalogue: those that are there with what is usually behind them, and the others folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.document_entries import Anatomy
from reports.layer1_document import Layer1Document
from reports.layer1_subject import Subject
from reports.model import Block, Column, Computed, Folded, Paragraph

ABSENT_COLUMNS = (Column("symptom"), Column("what was seen"), Column("threshold"))

CATALOGUE = Computed("the symptom catalogue; the numbers are those of the finding")


def symptom_blocks(subject: Subject, anatomy: Anatomy, document: Layer1Document) -> Iterator[Block]:
    """What is there on any device of the run, and what this device was looked at for without finding it."""
    yield from _there(document)
    if absent := [symptom for symptom in anatomy.symptoms if symptom.present is False]:
        where = f" on {anatomy.scope}" if len(document.anatomy) > 1 else ""
        title = f"Symptoms looked for and not there{where}: {', '.join(s.code for s in absent)}"
        seen = (Paragraph(_name(s), f"{s.numbers}{_close(s)}. Threshold: {s.threshold}") for s in absent)
        yield Folded(title, tuple(seen), subject.basis(len(absent), "symptoms", "the symptom catalogue"))


def _there(document: Layer1Document) -> Iterator[Paragraph]:
    """One sentence for each symptom that some device has, in catalogue order."""
    found: dict[str, list[tuple[str, Symptom]]] = {}
    for anatomy in document.anatomy:
        for symptom in anatomy.symptoms:
            found.setdefault(symptom.code, []).extend([(anatomy.scope, symptom)] if symptom.present else [])
    for alike in filter(None, found.values()):
        symptom, scopes = alike[0][1], [scope for scope, _ in alike]
        text = f"{_on(scopes, len(document.anatomy))}. Usual cause: {symptom.usual_cause} Threshold"
        yield Paragraph(_name(symptom), f"{text}: {symptom.threshold}", CATALOGUE)


def _on(scopes: Sequence[str], devices: int) -> str:
    if devices == 1:
        return "there"
    return f"on {scopes[0]}" if len(scopes) == 1 else f"on {len(scopes)} of {devices} devices"


def _close(symptom: Symptom) -> str:
    return f"; close: {symptom.close}" if symptom.close else ""


def _name(symptom: Symptom) -> str:
    return f"{symptom.code} {symptom.title}"
