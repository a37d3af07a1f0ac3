"""The timed rounds of a study: one job run, and all of them read back as the arms of a step.

A job of a round is a server start and one pass for each of its configurations, in the folder of a sweep, with
a look at the machine on both sides. What a configuration did in a round is a start of its own for the rule,
also where its server had other switches before: the n-th starts of both arms are neighbours of one round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layers.collectors.load.item import DataSet
from layers.evidence.documents import read_document, write_document
from layers.layer3_sweep.collect import Servers, Watcher, run_sweep
from layers.layer3_sweep.protocol import SERVER
from layers.layer3_sweep.sweep_folder import write_plan
from layers.layer4_ab.collect_experiment import changes, joined, named
from layers.layer4_ab.collect_sweep import sweep_rounds
from layers.layer4_ab.experiment_folder import AFTER, BEFORE, keep_snapshot
from layers.layer4_ab.model import Arm, Recorded
from layers.layer4_ab.run_experiment import with_model
from layers.layer4_ab.study.folder import SOUND, begin_job, job_folder, stands
from layers.layer4_ab.study.jobs import Job, Kind, jobs_of
from layers.layer4_ab.study.steps import Configuration, Step
from layers.layer4_ab.study.studies import Study
from layers.preflight.snapshot import Snapshot, from_file

STARTED = "started.json"


@dataclass(frozen=True, slots=True)
class Started:
    """How long the server of a job took until it answered, its graphs captured."""

    start_s: float


def run_round(
    study: Study,
    folder: Path,
    job: Job,
    data: DataSet,
    watcher: Watcher,
    told: Callable[[], bool],
    look: Callable[[], Snapshot],
) -> str:
    """Run one job; why it ended before its last pass, empty where it did not. Raises what `run_sweep`
    raises."""
    place = begin_job(folder, job)
    keep_snapshot(place / BEFORE, look())
    plan = study.plan(study.load(job.load), tuple(dict(one.settings) for one in job.cells))
    with Servers(plan, place) as servers:
        began = time.monotonic()
        info = servers.at(SERVER, 0).info
        write_document(place / STARTED, Started(time.monotonic() - began))
        plan = with_model(plan, info)
        write_plan(place, plan)
        why = run_sweep(plan, place, data, watcher, None, told, servers)
    if not why:
        keep_snapshot(place / AFTER, look())
    return why


@dataclass(frozen=True, slots=True)
class Rounds:
    """Everything timed that stands. `of`: what a configuration did, a Recorded for each round, by its key;
    `start_s` how long its servers took to start, where each round had one of its own."""

    of: Mapping[str, Sequence[Recorded]] = field(default_factory=dict)
    start_s: Mapping[str, Sequence[float]] = field(default_factory=dict)
    hot: bool = False
    """whether both arms of a pair are one server, whose switches were changed as it ran"""

    def arm(self, arm: Arm, one: Configuration) -> Recorded:
        """All rounds of a configuration as an arm."""
        parts = self.of.get(one.key, ())
        as_arm = [replace(p, rounds=tuple(replace(r, arm=arm) for r in p.rounds)) for p in parts]
        return replace(joined(as_arm, ()), hot=self.hot)

    def arms(self, step: Step) -> tuple[Recorded, Recorded] | None:
        """Both arms of a step; None where one has no run."""
        a, b = self.arm(Arm.A, step.a), self.arm(Arm.B, step.b)
        return (a, b) if a.rounds and b.rounds else None


def read_rounds(folder: Path, study: Study) -> Rounds:
    """Of the jobs that stand; UnreadableInput where one of those is damaged."""
    first: Snapshot | None = None
    of: dict[str, list[Recorded]] = {}
    start_s: dict[str, list[float]] = {}
    for job in jobs_of(study):
        if job.kind is not Kind.ROUND or not stands(folder, study, job):
            continue
        place = job_folder(folder, job)
        looks = [from_file(place / name) for name in (BEFORE, AFTER)]
        first = first or looks[0]
        changed = changes(first, looks)
        for one in job.cells:
            of.setdefault(one.key, []).append(_run(place, folder / SOUND, job, one, changed))
        if len(job.cells) == 1:
            started = read_document(place / STARTED, Started)
            start_s.setdefault(job.cells[0].key, []).append(started.start_s)
    return Rounds(of, start_s, hot=not study.fresh)


def _run(place: Path, sound: Path, job: Job, one: Configuration, changed: Sequence[str]) -> Recorded:
    """One configuration in one round."""
    read = sweep_rounds(Arm.A, place, sound, one.settings)
    return named(read, f"round {job.number}, {one.name}", changed)
