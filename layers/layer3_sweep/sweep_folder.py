"""The files of one sweep, by their names, below the artifacts of the investigation.

sweep-<date>-<time>/
  sweep.json                        the plan
  journal.log                       what was done (journal.py)
  items/<sha256>.log                items of passes; equal ones are one file
  server-<n>.log                    what a server printed that perfkit started
  passes/<name>/part-<n>/           one run of the load client (docs/sweep.md)
  passes/<name>/part-<n>-samples/   recordings of the samplers around it
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.load.item import Item, write_items
from layers.evidence.artifacts import describe_artifact
from layers.evidence.documents import read_document, write_document
from layers.evidence.secrets import MASK, masked_arguments, masked_text
from layers.layer3_sweep.protocol import SweepPlan
from layers.layer3_sweep.subject import Subject
from parsers.errors import StoreError, UsageError

PLAN, JOURNAL, ITEMS = "sweep.json", "journal.log", "items"
PREFIX = "sweep-"


def new_folder(artifacts: Path, prefix: str = PREFIX) -> Path:
    """A new folder for a sweep, or another measurement of many files, that begins now."""
    wanted = f"{prefix}{datetime.now(UTC):%Y%m%d-%H%M%S}"
    number = 1
    while True:
        folder = artifacts / (wanted if number == 1 else f"{wanted}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}: check the folder and its permissions") from error
        else:
            return folder


def latest_folder(artifacts: Path, plan: str = f"{PREFIX}*/{PLAN}", what: str = "sweep") -> Path:
    """That of the measurement that began last, by the pattern of its plan; UsageError where there is none."""
    found = [path.parent for path in artifacts.glob(plan)]
    if not found:
        raise UsageError(f"--resume: no {what} in {artifacts}: check --investigation, or begin one")
    return max(found, key=lambda folder: folder.name)


def write_plan(folder: Path, plan: SweepPlan) -> None:
    """In one step: a plan is there whole, or not at all. What looks like a secret is masked."""
    write_document(folder / PLAN, as_json(plan))


def read_plan(folder: Path, command: str | None = None) -> SweepPlan:
    """UnreadableInput where there is none, or it is damaged. `command` starts the server in place of the one
    that was kept; UsageError where that is needed, since it held a secret."""
    plan = read_document(folder / PLAN, SweepPlan, "no plan of a sweep")
    if command is not None:
        return replace(plan, subject=replace(plan.subject, command=command))
    if MASK in f"{plan.subject}":
        raise UsageError("--resume: the command of --launch was kept without its secret: give --launch again")
    return plan


def keep_items(folder: Path, items: Sequence[Item]) -> Path:
    """The file of these items, written where there is none yet."""
    place = folder / ITEMS
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as made:
        new = Path(made, "items.log")
        write_items(new, items)
        kept = place / f"{describe_artifact(new).sha256}.log"
        os.replace(new, kept)
    return kept


def part_folder(name: str, number: int) -> str:
    """Below that of the sweep."""
    return f"passes/{name}/part-{number}"


def samples_folder(part: Path) -> Path:
    return part.with_name(f"{part.name}-samples")


def server_log(folder: Path) -> Path:
    """A new one for each start."""
    number = 1
    while (path := folder / f"server-{number}.log").exists():
        number += 1
    return path


def as_json(plan: SweepPlan) -> Any:
    """The plan for the record and the document: without what looks like a secret in a command or address."""
    subject = plan.subject
    engine = masked_arguments(subject.engine) if subject.engine is not None else None
    hidden = Subject(masked_text(subject.url), masked_text(subject.command), engine)
    control = Subject(masked_text(plan.control.url)) if plan.control is not None else None
    return msgspec.to_builtins(replace(plan, subject=hidden, control=control))
