"""Reads a recording of the sampler back: its series, and what the sampling itself cost.

Readings of overlapping calls are put in the order of their time. Values that their metric cannot have are
left out and counted, as in a log. A recording whose sampler was killed reads like any other; it lacks the
last second of its own cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from layers.collectors.gpu.fields import METRIC_OF, split_process
from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact
from layers.evidence.record_log import read_records
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.metric_limits import limits_of
from parsers.sampler_failures import failure_in
from parsers.series_model import Metric, SampledFile, Series

Record = dict[str, Any]
Count = tuple[str, str, int, int]
"""Probe, entity, ticks, missed ticks."""
Gaps = dict[tuple[str, str, str], int]
"""(entity, field, why) → how often the field had no value."""


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """One kind of call on one entity: how long it took, and how many of the ticks it was asked at."""

    probe: str
    entity: str
    calls: int
    ticks: int
    missed: int
    p50_ns: float
    max_ns: float


@dataclass(frozen=True, slots=True)
class SamplerCost:
    """What a sampler used of the machine: `cpu_share` counts one core as 1; None where it never said.
    `elapsed_ns`: from the start of the recording to its last record, where it was killed."""

    source: str
    period_ns: int
    elapsed_ns: int
    cpu_share: float | None
    probes: tuple[ProbeCost, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """An entity that stopped answering for good, and when (unix ns)."""

    entity: str
    device: int
    wall_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Start:
    """How a recording begins; `models` and `uuids` are those of its devices by index."""

    source: str
    period_ns: int
    wall_ns: int
    notes: tuple[str, ...]
    without_sm: tuple[int, ...]
    mig: tuple[int, ...]
    models: dict[int, str]
    uuids: dict[int, str]


@dataclass(frozen=True, slots=True)
class Recording:
    """One sampling by one source."""

    start: Start
    file: SampledFile
    artifact: Artifact
    cost: SamplerCost
    lost: tuple[Lost, ...]
    gaps: Gaps


@dataclass(slots=True)
class Column:
    """The readings of one field of one entity, in the order in which they were written."""

    device: int
    wall_ns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    missing: int = 0


def read_start(path: Path) -> Start:
    """The first record of a recording; UnreadableInput where it is none."""
    first = next(read_records(path, []), None)
    if first is None or first.record.get("kind") != "start":
        raise UnreadableInput(f"{path}: no recording of a sampler: its first line is not a start record")
    return _start(first.record)


def read_recording(path: Path) -> Recording:
    """Everything in a recording; UnreadableInput where it is none, damaged lines as losses."""
    start = read_start(path)
    losses: list[Loss] = []
    records = [record for _, record in read_records(path, losses)]
    readings = [record for record in records if record["kind"] == "r"]
    artifact = describe_artifact(path)
    lost = tuple(_lost(record) for record in records if record["kind"] == "lost")
    gaps = _gaps(readings)
    notes = (*start.notes, *_notes(records, lost, gaps))
    file = SampledFile(
        path=str(path),
        sha256=artifact.sha256,
        size_bytes=artifact.size_bytes,
        source=start.source,
        series=tuple(_series(readings)),
        losses=tuple(losses),
        notes=notes,
        failures=tuple(failure for note in notes if (failure := failure_in(note))),
        mig_devices=start.mig,
    )
    return Recording(start, file, artifact, _cost(start, records, readings), lost, gaps)


def _start(record: Record) -> Start:
    entities = record["entities"]
    return Start(
        source=record["source"],
        period_ns=record["period_ns"],
        wall_ns=record["wall_ns"],
        notes=tuple(record["notes"]),
        without_sm=tuple(record["without_sm"]),
        mig=tuple(record["mig"]),
        models={e["device"]: e["model"] for e in reversed(entities)},
        uuids={e["device"]: e["uuid"] for e in reversed(entities)},
    )


def _series(readings: Iterable[Record]) -> Iterator[Series]:
    columns: dict[tuple[str, str], Column] = {}
    for reading in readings:
        for name, value in reading["values"].items():
            column = columns.setdefault((reading["entity"], name), Column(reading["device"]))
            column.wall_ns.append(reading["wall_ns"])
            column.values.append(value)
        for name in reading.get("missing", ()):
            columns.setdefault((reading["entity"], name), Column(reading["device"])).missing += 1
    for (entity, name), column in sorted(columns.items()):
        yield _one_series(entity, name, column)


def _one_series(entity: str, name: str, column: Column) -> Series:
    field_name, pid = split_process(name)
    metric = METRIC_OF.get(field_name, Metric.OTHER)
    at_ns, values = np.array(column.wall_ns, np.int64), np.array(column.values, np.float64)
    low, high = limits_of(metric)
    order = np.argsort(at_ns, kind="stable")
    kept = order[(values[order] >= low) & (values[order] <= high)]
    return Series(
        metric=metric,
        field=field_name,
        entity=entity,
        device=column.device,
        at_ns=at_ns[kept],
        values=values[kept],
        missing=column.missing,
        out_of_range=len(values) - len(kept),
        pid=pid,
    )


def _gaps(readings: Iterable[Record]) -> Gaps:
    return dict(
        Counter(
            (reading["entity"], name, why)
            for reading in readings
            for name, why in reading.get("missing", {}).items()
        )
    )


def _notes(records: Iterable[Record], lost: Iterable[Lost], gaps: Gaps) -> Iterator[str]:
    yield from (record["text"] for record in records if record["kind"] == "note")
    yield from (f"{one.entity} was lost: {one.why}" for one in lost)
    yield from (f"{entity}: {name} has no value: {why} ({n}x)" for (entity, name, why), n in gaps.items())


def _lost(record: Record) -> Lost:
    return Lost(record["entity"], record["device"], record["wall_ns"], record["why"])


def _cost(start: Start, records: list[Record], readings: list[Record]) -> SamplerCost:
    costs = [record for record in records if record["kind"] == "cost"]
    last = costs[-1] if costs else None
    counts: list[Count] = next((record["counts"] for record in reversed(costs) if record["counts"]), [])
    calls = _calls(readings)
    return SamplerCost(
        source=start.source,
        period_ns=start.period_ns,
        elapsed_ns=last["elapsed_ns"] if last else records[-1]["mono_ns"] - records[0]["mono_ns"],
        cpu_share=last["cpu_ns"] / last["elapsed_ns"] if last and last["elapsed_ns"] else None,
        probes=tuple(_probe_cost(*count, calls) for count in counts),
    )


def _calls(readings: Iterable[Record]) -> dict[tuple[str, str], dict[int, int]]:
    """The calls of each (probe, entity) that answered: when → how long. One may give several readings."""
    calls: dict[tuple[str, str], dict[int, int]] = {}
    for reading in readings:
        of_probe = calls.setdefault((reading["probe"], reading["entity"]), {})
        of_probe[reading["mono_ns"]] = reading["call_ns"]
    return calls


def _probe_cost(
    probe: str, entity: str, ticks: int, missed: int, calls: dict[tuple[str, str], dict[int, int]]
) -> ProbeCost:
    took_ns = list(calls.get((probe, entity), {}).values())
    p50_ns = float(np.median(took_ns)) if took_ns else 0.0
    return ProbeCost(probe, entity, len(took_ns), ticks, missed, p50_ns, float(max(took_ns, default=0)))
