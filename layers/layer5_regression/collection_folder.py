"""The files of one collection of outputs, by their names, below the artifacts of the investigation.

    regress-<date>-<time>/
      regress.json            the plan
      items/<sha256>.log      what is asked
      a/, b/, aa/             one arm each; a folder that `--a` takes by itself
        arm.json              what it was to be asked, and by whom it was answered
        cells/<n>.log         a cell: how it was asked, then a record with a checksum for each sample
        payloads/<sha256>     samples of sounds, equal ones once
        load/<n>/             the run of the load client
        server-<n>.log        what a server printed that perfkit started

A cell's file appears whole or not at all: a cell that was cut is asked again, since with half its requests
another batch would be asked.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from layers.evidence.documents import read_document, write_document
from layers.evidence.record_log import RecordLog
from layers.evidence.secrets import MASK, masked_arguments, masked_text
from layers.layer3_sweep import sweep_folder
from layers.layer3_sweep.subject import Subject
from layers.layer5_regression.collection_plan import ArmPlan, CollectionPlan
from layers.layer5_regression.model import Cell
from layers.layer5_regression.separation import OWN
from parsers.errors import StoreError, UsageError
from parsers.output_model import Kind, Output, Payload

PLAN, ARM, CELLS, PAYLOADS, LOAD = "regress.json", "arm.json", "cells", "payloads", "load"


@dataclass(frozen=True, slots=True)
class ArmDocument:
    """`arm.json`: what an arm was to be asked, and what answered. `counters`: named ones that must move."""

    name: str
    planned: int
    cells: tuple[Cell, ...]
    contents: tuple[str, ...]
    longest: float
    unit: str
    server: str = ""
    declared: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    counters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellDocument:
    """The head of a cell's file. `flushed`: whether the server emptied its caches before, None where it was
    not asked; `counters`: by how much samples of its metrics grew; hits of its content or prefix cache."""

    cell: Cell
    flushed: bool | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    hits: float | None = None
    looked_up: float | None = None


def new_folder(artifacts: Path) -> Path:
    """A new folder for a collection that begins now."""
    return sweep_folder.new_folder(artifacts, OWN)


def latest_folder(artifacts: Path) -> Path:
    """That of the collection that began last; UsageError where there is none."""
    return sweep_folder.latest_folder(artifacts, f"{OWN}*/{PLAN}", "collection")


def write_plan(folder: Path, plan: CollectionPlan) -> None:
    """What looks like a secret in a command or address is masked."""
    arms = tuple(replace(arm, subject=masked(arm.subject)) for arm in plan.arms)
    write_document(folder / PLAN, replace(plan, arms=arms))


def read_plan(folder: Path) -> CollectionPlan:
    """UnreadableInput where it is damaged; UsageError where a command was kept without its secret."""
    plan = read_document(folder / PLAN, CollectionPlan)
    if any(MASK in f"{arm.subject}" for arm in plan.arms):
        raise UsageError("--resume: a command was kept without its secret: begin a collection anew")
    return plan


def masked(subject: Subject) -> Subject:
    engine = masked_arguments(subject.engine) if subject.engine is not None else None
    return Subject(masked_text(subject.url), masked_text(subject.command), engine)


def arm_folder(folder: Path, arm: ArmPlan) -> Path:
    return folder / arm.name


def cell_path(arm: Path, number: int) -> Path:
    """That of the cell with this place in the plan."""
    return arm / CELLS / f"{number:03}.log"


def write_cell(arm: Path, number: int, head: CellDocument, outputs: Sequence[Output]) -> None:
    """A cell's file, once all its samples are there."""
    path = cell_path(arm, number)
    unfinished = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        with RecordLog(unfinished) as log:
            log.append(msgspec.to_builtins(head))
            for output in outputs:
                log.append(_record(arm, output))
        os.rename(unfinished, path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: check the folder and its permissions") from error


def _record(arm: Path, output: Output) -> dict[str, Any]:
    """In the names that recorded outputs have everywhere; sounds by the checksum of their samples."""
    told: dict[str, Any] = {"id": output.item, "cell": output.cell, "expected": output.expected}
    told |= {"finish_reason": output.finish_reason, "error": output.error}
    told["completion_tokens"] = output.tokens
    for payload in output.payloads:
        if payload.kind is Kind.TEXT:
            told["text"] = payload.data.decode("utf-8", "surrogatepass")
        elif payload.kind is Kind.TOKENS:
            told["tokens"] = np.frombuffer(payload.data, payload.dtype).tolist()
        else:
            told["payload"] = _kept(arm, payload)
    return {name: value for name, value in told.items() if value not in (None, "")}


def _kept(arm: Path, payload: Payload) -> dict[str, Any]:
    digest = hashlib.sha256(payload.data).hexdigest()
    path = arm / PAYLOADS / digest
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(payload.data)
        os.rename(unfinished, path)
    told = {"kind": str(payload.kind), "dtype": payload.dtype, "shape": list(payload.shape)}
    return {"sha256": digest, **told, "rate_hz": payload.rate_hz}
