"""What a load process recorded of itself, read back: `pulse.py` writes it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layers.collectors.load.folder import processes_in, pulse_path
from layers.evidence.record_log import read_records
from parsers.errors import UnreadableInput
from parsers.loss import Loss


@dataclass(frozen=True, slots=True)
class PulseSpan:
    """About a second of one process: its CPU time, the reads that it ended in all exchanges that ended, and
    how late each tick of its loop was."""

    start_ns: int
    end_ns: int
    cpu_ns: int
    reads: int
    late_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PulseSeries:
    """One process. `wall_offset_ns`: wall clock less monotonic clock, at the start; `clock_step_ns` how much
    that had changed at the end, None where the process was killed; `real_time`: whether it ran ahead of
    others (`in_time`)."""

    process: int
    wall_offset_ns: int
    clock_step_ns: int | None
    spans: tuple[PulseSpan, ...]
    real_time: bool = False


def read_pulses(folder: Path, losses: list[Loss]) -> list[PulseSeries]:
    """Those of all processes of a run; UnreadableInput for a file without a start."""
    return [_series(folder, process, losses) for process in processes_in(folder)]


def _series(folder: Path, process: int, losses: list[Loss]) -> PulseSeries:
    path = pulse_path(folder, process)
    records = [record for _, record in read_records(path, losses)]
    start = next((record for record in records if record["kind"] == "start"), None)
    if start is None:
        raise UnreadableInput(f"{path}: a recording of the client without its start")
    end = next((record for record in records if record["kind"] == "end"), None)
    offset_ns = start["wall_ns"] - start["mono_ns"]
    step_ns = end["wall_ns"] - end["mono_ns"] - offset_ns if end else None
    ahead = bool(start.get("real_time"))
    return PulseSeries(process, offset_ns, step_ns, tuple(_spans(records)), ahead)


def _spans(records: Sequence[dict[str, Any]]) -> list[PulseSpan]:
    pulses = [record for record in records if record["kind"] in ("start", "pulse")]
    return [
        PulseSpan(
            start_ns=before["mono_ns"],
            end_ns=pulse["mono_ns"],
            cpu_ns=pulse["cpu_ns"] - before["cpu_ns"],
            reads=pulse["reads"] - before.get("reads", 0),
            late_ns=tuple(pulse["late_ns"]),
        )
        for before, pulse in itertools.pairwise(pulses)
    ]
