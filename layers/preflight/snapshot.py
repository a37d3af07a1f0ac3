"""The baseline record as a whole: everything that must be the same for two runs to be compared.

A snapshot is a part of the document that `perfkit preflight` prints and records, and is read back from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.gpu.inventory_model import Inventory
from layers.preflight.environment import environment_section
from layers.preflight.facts import Section, gather_all
from layers.preflight.graphics import gpu_section
from layers.preflight.hub import checkpoint_section, data_section
from layers.preflight.machine import machine_section
from layers.preflight.server_config import server_section
from layers.preflight.software import Software, software_sections
from parsers.errors import UnreadableInput
from parsers.regular_file import open_regular

MAX_DOCUMENT_BYTES = 64 << 20
"""Of a document of perfkit preflight; that of a machine with thousands of processes has 2 MB."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was recorded and when (ISO 8601, UTC)."""

    taken: str
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section:
        """The section of this name; an empty one where it was not asked for."""
        return next((section for section in self.sections if section.name == name), Section(name, {}))


@dataclass(frozen=True, slots=True)
class Subject:
    """What a baseline is about beyond the machine: each part is optional and has no section without."""

    server: str | None = None
    checkpoint: str | None = None
    data: str | None = None


def take_snapshot(subject: Subject, inventory: Inventory, software: Software) -> Snapshot:
    """Ask for everything; never fails for a part that is not to be had."""
    probes: list[tuple[str, Callable[[], Section]]] = [
        ("machine", machine_section),
        ("environment", environment_section),
    ]
    if subject.checkpoint is not None:
        probes.append(("checkpoint", partial(checkpoint_section, subject.checkpoint)))
    if subject.data is not None:
        probes.append(("data", partial(data_section, subject.data)))
    if subject.server is not None:
        probes.append(("server", partial(server_section, subject.server)))
    machine, *rest = gather_all(probes)
    parts = (machine, gpu_section(inventory), *software_sections(software), *rest)
    return Snapshot(datetime.now(UTC).isoformat(timespec="seconds"), parts)


def to_section(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as it stands in a document."""
    return asdict(snapshot)


def from_document(document: Mapping[str, Any], where: str) -> Snapshot:
    """Read back the snapshot of a document of `perfkit preflight`; UnreadableInput where it holds none."""
    try:
        return msgspec.convert(document["snapshot"], Snapshot)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise UnreadableInput(
            f"{where}: no snapshot in it: give a document of perfkit preflight --json"
        ) from error


def from_file(path: Path) -> Snapshot:
    """Read back the snapshot of a saved document."""
    try:
        with open_regular(path) as file:
            text = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(text) > MAX_DOCUMENT_BYTES:
            raise UnreadableInput(f"{path}: more than {MAX_DOCUMENT_BYTES >> 20} MiB, which no snapshot has")
        document = json.loads(text)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{path}: no JSON document: give one of perfkit preflight --json") from error
    return from_document(document, str(path))
