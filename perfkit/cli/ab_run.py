"""How `perfkit ab` runs an experiment: a folder of its own in the investigation, run after run.

Progress is a line on stderr for each run that ended, and a moving one on a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.plan import Load
from layers.evidence.store import ARTIFACTS, Investigation
from layers.layer3_sweep.collect import TOLD, Watcher
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.protocol import PassKey, SweepPlan
from layers.layer3_sweep.subject import Subject
from layers.layer4_ab.experiment import ArmPlan, Experiment, RunKey, plan_of_run, planned
from layers.layer4_ab.experiment_folder import (
    SOUND,
    latest_folder,
    left_to_run,
    new_folder,
    read_judging,
    resumable,
    write_experiment,
    write_judging,
)
from layers.layer4_ab.run_experiment import run_experiment
from parsers.errors import PerfkitError, UsageError
from perfkit.cli import sweep_options
from perfkit.cli.messages import complain, say
from perfkit.cli.sweep_plan import Wanted, plan_of, subject_of
from perfkit.cli.sweep_run import Lines, moving_line

START_S = 10.0
"""About what a run costs beside its load: a server that starts, samplers, two looks at the machine."""
S_PER_MINUTE = 60
DEFAULT_LOAD = 8
NO_ARMS = (
    "say how B differs (--set NAME=VALUE --vs NAME=OTHER, or --launch-b CMD), or name results of both arms "
    "(--a FILE... --b FILE...): perfkit ab --help"
)


@dataclass(frozen=True, slots=True)
class Arms:
    """What the options say of the two arms, as they were given."""

    set_: Sequence[str]
    vs: Sequence[str]
    launch: str | None
    launch_b: str | None
    preset: str | None
    pipeline: str | None
    a_a: bool
    hot: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """An experiment as it was left: `why` it ended before its last run, empty where it did not; the error
    that it was, where it was one."""

    folder: Path
    experiment: Experiment
    why: str
    error: PerfkitError | None = None

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended it."""
        return self.error is None and self.why.endswith(TOLD)


def experiment_of(arms: Arms, load: Mapping[str, Any], at: float | None, pairs: int) -> Experiment:
    """The experiment that the options describe; UsageError for what cannot be."""
    if not (arms.vs or arms.launch_b or arms.a_a):
        raise UsageError(NO_ARMS)
    if arms.launch_b and not arms.launch:
        raise UsageError("--launch-b: say the command of A with --launch")
    first = subject_of(None, arms.launch, arms.preset, arms.pipeline, [])
    other = Subject(command=arms.launch_b) if arms.launch_b else first
    a, b = ArmPlan(first, _settings_a(arms)), ArmPlan(other, _settings_b(arms))
    if a.settings.keys() != b.settings.keys():
        raise UsageError("--set, --vs: name the same settings in both arms, with the value that each has")
    return planned(_at_one_load(first, load, at), a, b, pairs, a_a=arms.a_a, hot=arms.hot)


def _settings_a(arms: Arms) -> dict[str, str]:
    return sweep_options.pairs("--set", arms.set_)


def _settings_b(arms: Arms) -> dict[str, str]:
    """Those of A where the arms are the same on purpose, or differ in their command alone."""
    if arms.a_a and arms.vs:
        raise UsageError("--a-a: both arms are the same; leave out --vs")
    same = arms.a_a or (arms.launch_b and not arms.vs)
    return _settings_a(arms) if same else sweep_options.pairs("--vs", arms.vs)


def _at_one_load(subject: Subject, load: Mapping[str, Any], at: float | None) -> SweepPlan:
    if at is not None and (at < 1 or at != int(at)):
        raise UsageError(f"--at {at:g}: an experiment runs a whole number of requests at a time")
    usual: dict[str, Any] = {"control": None, "rates": [], "arrivals": "poisson", "repeats": 1}
    usual |= {"cells": ({},), "after_shed": "drop", "minutes": None, "processes": None}
    wanted = Wanted(subject=subject, max_concurrency=1, **usual, **load)
    return replace(plan_of(wanted), loads=(Load(int(at) if at is not None else DEFAULT_LOAD),))


def begin(
    experiment: Experiment,
    investigation: Path,
    headers: Mapping[str, str],
    told: Callable[[], bool],
    judging: Mapping[str, Any],
) -> Ended:
    """Begin an experiment, in a folder of its own; `judging` are the options that its result is judged by."""
    with Investigation.open(investigation):
        folder = new_folder(investigation / ARTIFACTS)
    write_experiment(folder, experiment)
    write_judging(folder, judging)
    return _run(experiment, folder, headers, told)


def go_on(investigation: Path, headers: Mapping[str, str], told: Callable[[], bool]) -> Ended:
    """Go on with the experiment that began last in this investigation."""
    folder = latest_folder(investigation / ARTIFACTS)
    return _run(resumable(folder), folder, headers, told)


def kept_judging(investigation: Path) -> Mapping[str, Any]:
    """The options by which the experiment that began last is to be judged."""
    return read_judging(latest_folder(investigation / ARTIFACTS))


def _run(experiment: Experiment, folder: Path, headers: Mapping[str, str], told: Callable[[], bool]) -> Ended:
    """Data that the endpoint cannot send is refused before any server is started."""
    data = data_set(experiment.each.data, folder / SOUND, experiment.each.seed)
    endpoint_for(experiment.each.endpoint).check(data.warmup("check"))
    say(_announced(experiment, folder))
    failed: PerfkitError | None = None
    with moving_line() as move:
        try:
            why = run_experiment(experiment, folder, data, Runs(experiment, move), headers, told)
        except PerfkitError as error:  # what was recorded is judged and kept all the same
            complain(str(error))
            why, failed = str(error), error
    return Ended(folder, experiment, why, failed)


def _announced(experiment: Experiment, folder: Path) -> str:
    """What is left to do, and about how long that takes."""
    runs, extent = len(left_to_run(folder, experiment)), experiment.each.extent
    said = f"{runs} of {len(experiment.order)} runs to go, {''.join(experiment.order).upper()}, in {folder}"
    if extent.duration_s is None or not runs:
        return said
    about_s = runs * (extent.duration_s + extent.warmup_s + START_S)
    return f"{said}: about {max(1, round(about_s / S_PER_MINUTE))} min"


@dataclass(slots=True)
class Runs:
    """Follows an experiment in words."""

    experiment: Experiment
    move: Callable[[str], None]

    def run_begins(self, key: RunKey, total: int) -> Watcher:
        self.move(f"{key.number}/{total}  {key.arm.upper()}: starting the server")
        return RunLines(plan_of_run(self.experiment, key), self.move, run=key, runs=total)


@dataclass(slots=True)
class RunLines(Lines):
    """Follows one run of an experiment: its lines are numbered as the runs are."""

    run: RunKey = field(kw_only=True)
    runs: int = field(kw_only=True)

    def begins(self, key: PassKey, number: int, total: int, processes: int) -> None:
        Lines.begins(self, key, self.run.number, self.runs, processes)
