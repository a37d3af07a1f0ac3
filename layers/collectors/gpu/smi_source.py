"""Samples GPUs through one long-lived `nvidia-smi --query-gpu … -lms`, where NVML cannot be used.

The utilisation is the number that NVML gives. Columns are those that were asked for, in that order; the
header is left out, since it may call them by other names.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.gpu.line_child import Line, follow, require
from layers.collectors.gpu.source import Description, Entity, Reading, Sink, SourceUnavailable, Values
from parsers.sampled_cells import MIB, Malformed, read_number

PROGRAM = "nvidia-smi"
LIST_TIMEOUT_S = 15.0
"""A first call without persistence mode loads the driver, which takes seconds (6 s reported). Shorter than a
sampler is given to begin (`live.START_TIMEOUT_S`), so that it says itself what hung."""
NS_PER_MS = 1_000_000

SCALES = {
    "utilization.gpu": 1.0,
    "utilization.memory": 1.0,
    "memory.used": MIB,
    "power.draw": 1.0,
    "clocks.sm": 1.0,
    "clocks.mem": 1.0,
    "temperature.gpu": 1.0,
}
"""Queried field, and what its number is multiplied by to get the unit that is recorded."""


class SmiSource:
    """nvidia-smi on the chosen devices (its indexes, in PCI order), or on all where none is named."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._program = require(PROGRAM)
        self._devices = tuple(targets)
        entities = _list_gpus(self._program, self._devices)
        self._entities = {entity.device: entity for entity in entities}
        self.description = Description(entities, without_sm=tuple(self._entities))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        command = [self._program, f"--query-gpu=index,{','.join(SCALES)}", "--format=csv,noheader,nounits"]
        command += [*_chosen(self._devices), "-lms", str(max(1, period_ns // NS_PER_MS))]
        code = follow(command, lambda line: self._take(line, sink), stop)
        if code is not None:
            sink.note(f"{PROGRAM} ended by itself with exit code {code}")

    def _take(self, line: Line, sink: Sink) -> None:
        row = decode_row(line.text)
        entity = self._entities.get(row[0]) if row else None
        if row is None or entity is None:
            sink.note(f"{PROGRAM}: {line.text}")
            return
        sink.reading(Reading(PROGRAM, entity, line.monotonic_ns, line.wall_ns, 0, row[1]))


def cells_of(text: str) -> list[str]:
    """The cells of one line of nvidia-smi's csv, which quotes nothing."""
    return [cell.strip() for cell in text.split(",")]


def decode_row(text: str) -> tuple[int, Values] | None:
    """Index and values of one line; None where it is no row, such as an error text."""
    cells = cells_of(text)
    if len(cells) != 1 + len(SCALES) or not cells[0].isdecimal():
        return None
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for (field, scale), cell in zip(SCALES.items(), cells[1:], strict=True):
        number = _number(cell, scale)
        if number is None:
            missing[field] = cell
        else:
            values[field] = number
    return int(cells[0]), Values(values, missing)


def _number(cell: str, scale: float) -> float | None:
    try:
        return read_number(cell, scale)
    except Malformed:
        return None


def _list_gpus(program: str, devices: Sequence[str]) -> tuple[Entity, ...]:
    command = [program, "--query-gpu=index,uuid,name", "--format=csv,noheader", *_chosen(devices)]
    try:
        listed = output_of(command, LIST_TIMEOUT_S).decode(errors="replace").splitlines()
    except ProbeFailed as error:
        raise SourceUnavailable(str(error)) from error
    rows = map(cells_of, listed)
    found = tuple(Entity(f"gpu {r[0]}", int(r[0]), *r[1:]) for r in rows if len(r) == 3 and r[0].isdecimal())
    if not found:
        raise SourceUnavailable(f"{PROGRAM}: {listed[0] if listed else 'lists no GPU'}")
    return found


def _chosen(devices: Sequence[str]) -> list[str]:
    return ["-i", ",".join(devices)] if devices else []
