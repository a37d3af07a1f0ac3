"""Samples SM, tensor and memory activity through one long-lived `dcgmi dmon`, where NVML has no GPM.

On GPUs before Hopper DCGM is the only way to these counters while a service runs. It then holds the
performance monitor of the whole machine, so that nsys GPU metrics and ncu fail meanwhile. A first row without
values is normal, since the counters need two readings. DCGM counts GPUs as the host does, whatever
CUDA_VISIBLE_DEVICES or a container says.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from layers.collectors.gpu.line_child import Line, follow, require
from layers.collectors.gpu.source import Description, Entity, Reading, Sink, Values
from parsers.dcgm_dmon import ENTITY, Layout, read_layout
from parsers.dcgm_fields import BY_SHORT_NAME, is_blank
from parsers.sampled_cells import Malformed, read_number
from parsers.sampler_failures import failure_in
from parsers.series_model import NO_DEVICE

PROGRAM = "dcgmi"
FIELDS = (1001, 1002, 1003, 1004, 1005)
"""GR, SM, occupancy, tensor, DRAM: active shares (DCGM's profiling fields)."""
MIN_PERIOD_MS = 100
"""The host engine refreshes profiling fields about every 100 ms; rows between are N/A."""
NS_PER_MS = 1_000_000


class DcgmSource:
    """dcgmi on the chosen GPUs (DCGM's ids), or on all where none is named."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._program = require(PROGRAM)
        self._devices = tuple(targets)
        self._layout: Layout | None = None
        self.description = Description((), ("GPUs are counted as DCGM counts them: `dcgmi discovery -l`",))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        delay_ms = max(MIN_PERIOD_MS, period_ns // NS_PER_MS)
        command = [self._program, "dmon", "-e", ",".join(map(str, FIELDS)), "-d", str(delay_ms)]
        if self._devices:
            command += ["-i", ",".join(self._devices)]
        code = follow(command, lambda line: self._take(line, sink), stop)
        if code is not None:
            sink.note(f"{PROGRAM} dmon ended by itself with exit code {code}")

    def _take(self, line: Line, sink: Sink) -> None:
        self._layout = read_layout(line.text) or self._layout
        if self._layout and (row := decode_row(line.text, self._layout)):
            entity, values = row
            sink.reading(Reading(PROGRAM, entity, line.monotonic_ns, line.wall_ns, 0, values))
        elif failure_in(line.text):
            sink.note(f"{PROGRAM}: {line.text.strip()}")


def decode_row(text: str, layout: Layout) -> tuple[Entity, Values] | None:
    """Entity and values of one line; None for headings and error texts."""
    match = ENTITY.match(text)
    if match is None:
        return None
    entity = Entity(f"{match[1].lower()} {match[2]}", int(match[2]) if match[1] == "GPU" else NO_DEVICE)
    cells = layout.cells(text)
    if cells is None:
        why = "a row with fewer values than columns: which is missing cannot be told"
        return entity, Values(missing=dict.fromkeys(layout.names, why))
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, cell in zip(layout.names, cells, strict=True):
        number = _number(name, cell)
        if number is None:
            missing[name] = cell
        else:
            values[name] = number
    return entity, Values(values, missing)


def _number(name: str, cell: str) -> float | None:
    field = BY_SHORT_NAME.get(name)
    try:
        number = read_number(cell)
    except Malformed:
        return None
    return None if number is None or is_blank(number) else number * (field.scale if field else 1)
