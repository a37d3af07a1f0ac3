"""The file of a sampling: what the sampler appends, one record per line, each with both clocks.

    {"kind": "start", source, period_ns, entities, notes, without_sm, mig}   once, first
    {"kind": "r", probe, entity, device, mono_ns, wall_ns, call_ns, values, missing}
    {"kind": "lost", entity, device, why} · {"kind": "note", text}
    {"kind": "cost", cpu_ns, elapsed_ns, counts: [[probe, entity, ticks, missed]]}   about once a second

`readings` reads it back. Lines carry a checksum (layers/evidence/record_log.py); a killed sampler loses none.
"""

from __future__ import annotations

import math
import resource
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from layers.collectors.gpu.source import Description, Entity, ProbeCount, Reading
from layers.evidence.record_log import RecordLog
from parsers.sampler_failures import MAX_TEXT_CHARACTERS

MAX_NOTES = 100
"""Different texts that are worth keeping; a program that finds new words all the time says nothing new."""
NS_PER_S = 1_000_000_000


class Recorder:
    """Appends to one recording; safe from any thread."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._began_ns, self._began_cpu_ns = time.monotonic_ns(), time.process_time_ns()
        self._lost: set[str] = set()
        self._notes: set[str] = set()

    def start(self, source: str, period_ns: int, description: Description) -> None:
        self._append("start", {"source": source, "period_ns": period_ns, **asdict(description)})

    def reading(self, reading: Reading) -> None:
        values = {name: value for name, value in reading.answer.values.items() if math.isfinite(value)}
        odd = dict.fromkeys(reading.answer.values.keys() - values.keys(), "not a finite number")
        record: dict[str, Any] = {
            "probe": reading.probe,
            "entity": reading.entity.name,
            "device": reading.entity.device,
            "mono_ns": reading.monotonic_ns,
            "wall_ns": reading.wall_ns,
            "call_ns": reading.call_ns,
            "values": values,
        }
        if missing := {**reading.answer.missing, **odd}:
            record["missing"] = missing
        self._append("r", record)

    def lost(self, entity: Entity, why: str) -> None:
        """Once for each entity, however many probes notice."""
        if self._first(self._lost, entity.name):
            self._append("lost", {"entity": entity.name, "device": entity.device, "why": why})

    def note(self, text: str) -> None:
        """Once for each text: some programs repeat their complaint with every sample."""
        short = text[:MAX_TEXT_CHARACTERS]
        if len(self._notes) < MAX_NOTES and self._first(self._notes, short):
            self._append("note", {"text": short})

    def cost(self, counts: Sequence[ProbeCount]) -> None:
        record = {
            "cpu_ns": time.process_time_ns() - self._began_cpu_ns + _children_cpu_ns(),
            "elapsed_ns": time.monotonic_ns() - self._began_ns,
            "counts": [astuple(count) for count in counts],
        }
        self._append("cost", record)

    def _first(self, seen: set[str], key: str) -> bool:
        with self._lock:
            new = key not in seen
            seen.add(key)
        return new

    def _append(self, kind: str, record: Mapping[str, Any]) -> None:
        stamped = {"kind": kind, "mono_ns": time.monotonic_ns(), "wall_ns": time.time_ns(), **record}
        with self._lock:
            self._log.append(stamped)


def _children_cpu_ns() -> int:
    """What ended children used (nvidia-smi, dcgmi)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * NS_PER_S)
