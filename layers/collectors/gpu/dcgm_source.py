"""Samples SM, tensor and memory activity through one long-lived `dcgmi dmon`, where NVML has no GPM.

On GPUs before Hopper DCGM is the only way to these counters while a service runs. It then holds the
performance monitor of the whole machine, so that nsys GPU metrics and ncu fail meanwhile. A first row without
values is normal, since the counters need two snapshots. DCGM counts GPUs as the host does, whatever
CUDA_VISIBLE_DEVICES or a container says.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from layers.collectors.gpu.line_child import Line, follow, require
from layers.collectors.gpu.source import Description, Entity, Reading, Sink, Values

PROGRAM = "dcgmi"
NS_PER_MS = 1_000_000
MIN_PERIOD_MS = 100
"""The host engine refreshes profiling fields about every 100 ms; rows between are N/A."""

FIELDS = {
    1001: "DCGM 1001 GRACT",
    1002: "DCGM 1002 SMACT",
    1003: "DCGM 1003 SMOCC",
    1004: "DCGM 1004 TENSO",
    1005: "DCGM 1005 DRAMA",
}
"""Field id, and what it is called in a recording; values are ratios already."""

ROW = re.compile(r"^\s*(?P<entity>GPU(?P<instance>-I)?\s+(?P<number>\d+))\s+(?P<cells>.*\S)\s*$")
FAILED = re.compile(r"error|unable|requires|not supported|No data returned", re.IGNORECASE)


class DcgmSource:
    """dcgmi on the chosen GPUs (DCGM's ids), or on all where none is named."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._program = require(PROGRAM)
        self._devices = tuple(devices)
        self.description = Description((), ("GPUs are counted as DCGM counts them: `dcgmi discovery -l`",))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        delay_ms = max(MIN_PERIOD_MS, period_ns // NS_PER_MS)
        command = [self._program, "dmon", "-e", ",".join(map(str, FIELDS)), "-d", str(delay_ms)]
        if self._devices:
            command += ["-i", ",".join(map(str, self._devices))]
        code = follow(command, lambda line: _take(line, sink), stop)
        if code is not None:
            sink.note(f"{PROGRAM} dmon ended by itself with exit code {code}")


def _take(line: Line, sink: Sink) -> None:
    row = decode_row(line.text)
    if row is not None:
        entity, values = row
        sink.reading(Reading(PROGRAM, entity, line.monotonic_ns, line.wall_ns, 0, values))
    elif FAILED.search(line.text):
        sink.note(f"{PROGRAM}: {line.text.strip()}")


def decode_row(text: str) -> tuple[Entity, Values] | None:
    """Entity and values of one line; None for headings and error texts.

    Where cells are fewer than fields (old versions leave some out), nobody can say whose they are.
    """
    match = ROW.match(text)
    if match is None:
        return None
    number = int(match["number"])
    entity = Entity(re.sub(r"\s+", " ", match["entity"]).lower(), -1 if match["instance"] else number)
    cells = match["cells"].split()
    if len(cells) != len(FIELDS):
        why = f"{len(cells)} cells for {len(FIELDS)} fields"
        return entity, Values(missing=dict.fromkeys(FIELDS.values(), why))
    return entity, _values(cells)


def _values(cells: Sequence[str]) -> Values:
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for field, cell in zip(FIELDS.values(), cells, strict=True):
        try:
            values[field] = float(cell)
        except ValueError:
            missing[field] = cell
    return Values(values, missing)
