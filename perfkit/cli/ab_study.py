"""`perfkit ab --study NAME`: every switch of the bundled engine by one command, job after job.

It says what it will do and about how long that takes before it begins. Each job stands whole on disk or is
done again, so Ctrl-C, a kill or the end of a budget leave a study that --resume goes on with; what is there
is judged in any case.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.item import DataSet
from layers.collectors.load.plan import EndpointChoice
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.store import ARTIFACTS, Investigation
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.subject import require_engine
from layers.layer4_ab.run_experiment import snapshot_of_machine
from layers.layer4_ab.study.analyse import analysed
from layers.layer4_ab.study.answers import ask, read_answers
from layers.layer4_ab.study.evidence import read_evidence
from layers.layer4_ab.study.folder import (
    SOUND,
    latest_folder,
    left_to_do,
    new_folder,
    read_study,
    write_study,
)
from layers.layer4_ab.study.jobs import Job, Kind, planned_text
from layers.layer4_ab.study.judge import judge_study
from layers.layer4_ab.study.rounds import read_rounds, run_round
from layers.layer4_ab.study.studies import Study, study_named
from parsers.errors import PerfkitError, UsageError
from perfkit.cli import output
from perfkit.cli.ab_study_evidence import run_evidence
from perfkit.cli.ab_study_view import show_ab_study
from perfkit.cli.ending import told_to_end
from perfkit.cli.messages import complain, say
from perfkit.cli.record import record_result
from perfkit.cli.regress_run import Lines as AnswerLines
from perfkit.cli.sweep_options import checked
from perfkit.cli.sweep_run import Lines, moving_line

S_PER_MINUTE = 60.0
LEAST_ROUNDS = 2
"""One round has no interval, and a ladder of them nothing to tell."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say."""

    name: str
    rounds: int | None
    seconds: float | None
    minutes: float | None
    resume: bool
    common: Mapping[str, str]

    def study(self) -> Study:
        """UsageError for what cannot be."""
        found = study_named(self.name)
        if self.rounds is not None and self.rounds < LEAST_ROUNDS:
            raise UsageError(f"--pairs {self.rounds}: a study takes {LEAST_ROUNDS} rounds or more")
        seconds = found.seconds if self.seconds is None else checked("--seconds", self.seconds)
        switches = {one.name for one in found.switches}
        if taken := [name for name in self.common if name in switches]:
            raise UsageError(f"--set {taken[0]}: the study itself switches it; --set is for what all share")
        return replace(found, rounds=self.rounds or found.rounds, seconds=seconds, common=self.common)


def study_result(
    wanted: Wanted, investigation: Path, started: datetime, *, as_json: bool, no_record: bool
) -> int:
    """Run, or go on with, a study, and show and record what it found."""
    require_engine()
    with told_to_end() as told:
        folder, study = _going_on(investigation) if wanted.resume else _new(wanted, investigation)
        budget_s = None if wanted.minutes is None else checked("--minutes", wanted.minutes) * S_PER_MINUTE
        why = Work(study, folder, told, budget_s).run()
    result, artifacts = concluded(study, folder, investigation, why)
    try:
        if not no_record:
            record_result(investigation, result, started, artifacts)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=as_json, show=show_ab_study)
    return code


def concluded(study: Study, folder: Path, investigation: Path, why: str) -> tuple[Result, list[Artifact]]:
    """The result of what is there, and the files that it rests on."""
    rounds, compared = read_rounds(folder, study), read_answers(folder, study, investigation)
    found = analysed(study, rounds, read_evidence(folder, study), compared)
    result = judge_study(found, [job.text for job in left_to_do(folder, study)], why)
    files = [file for parts in rounds.of.values() for part in parts for file in part.artifacts]
    return result, list(dict.fromkeys(files))


def _new(wanted: Wanted, investigation: Path) -> tuple[Path, Study]:
    study = wanted.study()
    with Investigation.open(investigation):
        folder = new_folder(investigation / ARTIFACTS)
    write_study(folder, study)
    return folder, study


def _going_on(investigation: Path) -> tuple[Path, Study]:
    folder = latest_folder(investigation / ARTIFACTS)
    say(f"going on with {folder}")
    return folder, read_study(folder)


class Work:
    """The jobs of a study that are left, one after the other. `clock` tells seconds, for the budget."""

    def __init__(
        self,
        study: Study,
        folder: Path,
        told: threading.Event,
        budget_s: float | None = None,
        do: Mapping[Kind, Callable[[Job], str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._study, self._folder, self._told = study, folder, told
        self._budget_s, self._clock, self._began_s = budget_s, clock, clock()
        self._do = do or {Kind.ROUND: self._round, Kind.EVIDENCE: self._evidence, Kind.ANSWERS: self._answers}

    def run(self) -> str:
        """Do what is left; why it ended before the last job, empty where it did not."""
        left = left_to_do(self._folder, self._study)
        say(f"study {self._study.name}: {self._study.question}")
        say(f"{planned_text(self._study, left)}, in {self._folder}")
        for number, job in enumerate(left, 1):
            if why := self._why_end(job):
                return why
            say(f"{number:>{len(str(len(left)))}}/{len(left)}  {job.text}")
            if why := self._done(job):
                return f"{job.text}: {why}"
        return ""

    def _why_end(self, job: Job) -> str:
        if self._told.is_set():
            return "it was told to end"
        spent_s = self._clock() - self._began_s
        if self._budget_s is not None and spent_s + job.about_s > self._budget_s:
            minutes = self._budget_s / S_PER_MINUTE
            return f"{job.text} (about {job.about_s:.0f} s) would end behind the budget of {minutes:g} min"
        return ""

    def _done(self, job: Job) -> str:
        try:
            return self._do[job.kind](job)
        except PerfkitError as error:  # what was recorded is judged and kept all the same
            complain(str(error))
            return str(error)

    def _round(self, job: Job) -> str:
        load = self._study.load(job.load)
        data: DataSet = data_set(load.data, self._folder / SOUND)
        endpoint_for(EndpointChoice(load.endpoint)).check(data.warmup("check"))
        plan = self._study.plan(load, tuple(dict(one.settings) for one in job.cells))
        with moving_line() as move:
            told = self._told.is_set
            watcher = Lines(plan, move)
            return run_round(self._study, self._folder, job, data, watcher, told, snapshot_of_machine)

    def _evidence(self, job: Job) -> str:
        return run_evidence(self._study, self._folder, job, self._told)

    def _answers(self, job: Job) -> str:
        return ask(self._study, self._folder, job, AnswerLines(), self._told.is_set)
