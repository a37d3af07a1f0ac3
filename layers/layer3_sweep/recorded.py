"""What the parts of a pass left on disk, read back: after a sweep that ended as after one that was killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layers.collectors.gpu.readings import Recording, read_recording
from layers.collectors.load.flight import wait_until_left
from layers.collectors.load.folder import PLAN, flight_path, processes_in, records_path
from layers.collectors.load.plan_json import decode_plan
from layers.collectors.load.pulse_series import PulseSeries, read_pulses
from layers.collectors.load.records import RequestRecord
from layers.collectors.load.settle import read_run, settle
from layers.collectors.server_adapters.adapter import MetricsSample
from layers.collectors.server_adapters.metrics import read_metrics
from layers.collectors.server_adapters.metrics_source import SOURCE as METRICS_SOURCE
from layers.collectors.server_cpu import SOURCE as CPU_SOURCE
from layers.collectors.server_cpu import CpuLook, read_cpu
from layers.layer3_sweep.journal import Part
from layers.layer3_sweep.sweep_folder import samples_folder
from parsers.errors import UnreadableInput
from parsers.loss import Loss

LEFT_TIMEOUT_S = 60.0
"""For the load processes of a sweep that was killed: they read what they recorded, then end."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One part: its requests, what its load processes and samplers recorded, and what of that is damaged.

    `recordings` are those of devices and host, `pages` of the server's metrics, `looks` at its CPU.
    """

    part: Part
    records: tuple[RequestRecord, ...]
    pulses: tuple[PulseSeries, ...]
    recordings: tuple[Recording, ...]
    pages: tuple[MetricsSample, ...]
    looks: tuple[CpuLook, ...]
    losses: tuple[Loss, ...]
    problems: tuple[str, ...]


def part_records(folder: Path, part: Part, losses: list[Loss]) -> list[RequestRecord]:
    """Every attempt of a part, those that were in flight at a kill included; none where nothing was sent.

    Waits for load processes that still write; StoreError, UnreadableInput and InvalidMeasurement as those.
    """
    place = folder / part.folder
    numbers = processes_in(place) if place.is_dir() else []
    for number in numbers:
        wait_until_left(flight_path(place, number), LEFT_TIMEOUT_S)
        if not records_path(place, number).exists():
            plan = decode_plan((place / PLAN).read_text())
            losses += settle(replace(plan, folder=place), number).losses
    return read_run(place, losses) if numbers else []


@dataclass(frozen=True, slots=True)
class Samples:
    """What samplers left in a folder: of devices and host, pages of the server's metrics, looks at its
    CPU."""

    recordings: tuple[Recording, ...]
    pages: tuple[MetricsSample, ...]
    looks: tuple[CpuLook, ...]
    losses: tuple[Loss, ...]
    problems: tuple[str, ...]


def read_samples(folder: Path) -> Samples:
    """Every recording in the folder; one that cannot be read is a problem in words, never an end."""
    recordings, pages, looks = list[Recording](), list[MetricsSample](), list[CpuLook]()
    losses, problems = list[Loss](), list[str]()
    for path in sorted(folder.glob("samples-*.log")):
        try:
            if METRICS_SOURCE in path.name:
                metrics = read_metrics(path)
                pages += metrics.samples
                losses += metrics.losses
                problems += [metrics.lacking] if metrics.lacking else []
            elif CPU_SOURCE in path.name:
                looks += read_cpu(path, losses)
            else:
                recordings.append(read_recording(path))
        except UnreadableInput as error:
            problems.append(str(error))
    return Samples(tuple(recordings), tuple(pages), tuple(looks), tuple(losses), tuple(problems))


def read_part(folder: Path, part: Part) -> Recorded:
    """Everything of a part."""
    losses, problems = list[Loss](), list[str]()
    records = part_records(folder, part, losses)
    pulses: Sequence[PulseSeries] = ()
    if records:
        try:
            pulses = read_pulses(folder / part.folder, losses)
        except UnreadableInput as error:
            problems.append(str(error))
    sampled = read_samples(samples_folder(folder / part.folder))
    return Recorded(
        part=part,
        records=tuple(records),
        pulses=tuple(pulses),
        recordings=sampled.recordings,
        pages=sampled.pages,
        looks=sampled.looks,
        losses=(*losses, *sampled.losses),
        problems=(*problems, *sampled.problems),
    )
