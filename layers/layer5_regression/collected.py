"""Reads an arm that perfkit collected back: after a whole collection as after one that was cut.

Every record has a checksum and every sound is known by its own; what does not fit is lost and told. How many
samples there were to be says the arm's document, so that a collection that was cut never looks whole.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from layers.evidence.artifacts import describe_artifact
from layers.evidence.documents import read_document
from layers.evidence.record_log import read_records
from layers.layer5_regression.collection_folder import ARM, CELLS, PAYLOADS, ArmDocument, CellDocument
from layers.layer5_regression.grid import COLD
from layers.layer5_regression.model import Arm, Recorded
from layers.layer5_regression.proofs import proofs_of
from layers.layer5_regression.separation import Contents
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.output_model import Kind, Output, Payload
from parsers.recorded_outputs import output_of


def is_collected(folder: str) -> bool:
    """Whether this is the folder of an arm that perfkit collected."""
    return (Path(folder) / ARM).is_file()


def read_collected(name: str, folder: Path) -> Arm:
    """The arm; UnreadableInput where its document cannot be read."""
    document = read_document(folder / ARM, ArmDocument)
    losses, lost = list[Loss](), list[str]()
    outputs, heads, artifacts = list[Output](), list[CellDocument](), [describe_artifact(folder / ARM)]
    for path in sorted((folder / CELLS).glob("*.log")):
        artifacts.append(describe_artifact(path))
        found, head = _read_cell(path, folder, losses, lost)
        outputs += found
        heads += [head] if head is not None else []
    lost += [f"{loss.what}" for loss in losses]
    return Arm(
        name=name,
        outputs=tuple(outputs),
        artifacts=tuple(artifacts),
        lost=tuple(lost),
        missing=len(lost),
        sources=frozenset({os.path.realpath(folder)}),
        recorded=_recorded(document, heads),
    )


def contents_of_arm(folder: Path) -> Contents:
    """The items of a collected arm, by their content."""
    document = read_document(folder / ARM, ArmDocument)
    return Contents(frozenset(document.contents), document.longest, document.unit)


def _read_cell(
    path: Path, arm: Path, losses: list[Loss], lost: list[str]
) -> tuple[list[Output], CellDocument | None]:
    outputs, head = list[Output](), None
    for line, record in read_records(path, losses):
        try:
            if line == 1:
                head = msgspec.convert(record, CellDocument)
            else:
                outputs.append(_output(record, arm))
        except (msgspec.ValidationError, UnreadableInput, KeyError, TypeError, ValueError) as error:
            lost.append(f"{path.name}, line {line}: {error or 'no record of a sample'}")
    return outputs, head


def _output(record: Mapping[str, Any], arm: Path) -> Output:
    found = output_of(record, arm)
    if "payload" not in record:
        return found
    return replace(found, payloads=(*found.payloads, _payload(record["payload"], arm)))


def _payload(told: Mapping[str, Any], arm: Path) -> Payload:
    """The samples of a sound; UnreadableInput where they are not those that were recorded."""
    path = arm / PAYLOADS / str(told["sha256"])
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableInput(f"{path.name}: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != told["sha256"]:
        raise UnreadableInput(f"{path.name}: its checksum does not hold")
    return Payload(Kind(told["kind"]), data, told["dtype"], tuple(told["shape"]), told["rate_hz"])


def _recorded(document: ArmDocument, heads: list[CellDocument]) -> Recorded:
    counters: Counter[str] = Counter()
    for head in heads:
        counters.update(head.counters)
    cold = [head for head in heads if head.cell.cache == COLD and head.looked_up is not None]
    return Recorded(
        planned=document.planned,
        cells=tuple(head.cell for head in heads),
        server=document.server,
        declared=document.declared,
        settings=document.settings,
        counters=counters,
        proofs=proofs_of(document.declared, document.counters),
        hits=sum(head.hits or 0.0 for head in cold) if cold else None,
        looked_up=sum(head.looked_up or 0.0 for head in cold) if cold else None,
        not_flushed=sum(head.cell.cache == COLD and not head.flushed for head in heads),
        ended=len(heads) == len(document.cells),
    )
