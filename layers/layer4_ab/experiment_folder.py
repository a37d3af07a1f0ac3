"""The files of one experiment, below the artifacts of the investigation, and what of it stands.

ab-<date>-<time>/
  ab.json                     the experiment
  judging.json                by which options its result is judged
  sound/                      files that the data set makes
  runs/<number>-<arm>/        one run: the folder of a sweep (layers/layer3_sweep/sweep_folder.py)
  runs/<number>-<arm>/before.json, after.json     snapshots of the machine around it
  cut/<name>                  runs that were cut: a start that was lost is run anew, never gone on with
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from layers.evidence.documents import read_document, write_document
from layers.evidence.secrets import MASK
from layers.layer3_sweep import sweep_folder
from layers.layer3_sweep.journal import read_journal
from layers.layer3_sweep.protocol import passes_of
from layers.layer3_sweep.subject import Subject
from layers.layer3_sweep.sweep_folder import JOURNAL, as_json
from layers.layer4_ab.experiment import ArmPlan, Experiment, RunKey, plan_of_run, runs_of
from layers.preflight.snapshot import Snapshot
from parsers.errors import UsageError
from parsers.loss import Loss

PLAN, RUNS, CUT, SOUND, PREFIX = "ab.json", "runs", "cut", "sound", "ab-"
JUDGING = "judging.json"
BEFORE, AFTER = "before.json", "after.json"


def new_folder(artifacts: Path) -> Path:
    """A new folder for an experiment that begins now."""
    return sweep_folder.new_folder(artifacts, PREFIX)


def latest_folder(artifacts: Path) -> Path:
    """That of the experiment that began last; UsageError where there is none."""
    return sweep_folder.latest_folder(artifacts, f"{PREFIX}*/{PLAN}", "A/B")


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """In one step; what looks like a secret in a command is masked."""
    document = msgspec.to_builtins(replace(experiment, a=_hidden(experiment, 0), b=_hidden(experiment, 1)))
    document["each"] = as_json(experiment.each)
    write_document(folder / PLAN, document)


def write_judging(folder: Path, options: Mapping[str, Any]) -> None:
    """The options by which the result is to be judged: they were declared before the first run."""
    write_document(folder / JUDGING, options)


def read_judging(folder: Path) -> Mapping[str, Any]:
    """Nothing where none were kept; UnreadableInput where they are damaged."""
    path = folder / JUDGING
    return read_document(path, dict[str, Any]) if path.exists() else {}


def read_experiment(folder: Path) -> Experiment:
    """UnreadableInput where there is none, or it is damaged."""
    return read_document(folder / PLAN, Experiment, "no plan of an A/B")


def resumable(folder: Path) -> Experiment:
    """The experiment to go on with; UsageError where a command was kept without its secret."""
    experiment = read_experiment(folder)
    if MASK in f"{experiment.a.subject} {experiment.b.subject}":
        raise UsageError("--resume: a command was kept without its secret: begin a new experiment")
    return experiment


def run_folder(folder: Path, key: RunKey) -> Path:
    return folder / RUNS / key.name


def stands(folder: Path, experiment: Experiment, key: RunKey) -> bool:
    """Whether a run ended by itself and was looked at afterwards."""
    place = run_folder(folder, key)
    losses: list[Loss] = []  # they are told when the run is read back
    done = read_journal(place / JOURNAL, losses)
    ended = all(done.ended(one) for one in passes_of(plan_of_run(experiment, key)))
    return ended and (place / AFTER).is_file()


def left_to_run(folder: Path, experiment: Experiment) -> list[RunKey]:
    """The runs that do not stand yet; of runs that share a server both, where one does not."""
    missing = [key for key in runs_of(experiment) if not stands(folder, experiment, key)]
    if not experiment.hot:
        return missing
    pairs = {key.pair for key in missing}
    return [key for key in runs_of(experiment) if key.pair in pairs]


def begin_run(folder: Path, key: RunKey) -> Path:
    """An empty folder for a run; what an earlier try left there is put aside."""
    return put_aside(folder, run_folder(folder, key))


def put_aside(folder: Path, place: Path) -> Path:
    """The place, new and empty; what was there goes to the folder's CUT."""
    if place.exists():
        aside = folder / CUT
        aside.mkdir(exist_ok=True)
        number = len(list(aside.glob(f"{place.name}-*"))) + 1
        place.rename(aside / f"{place.name}-{number}")
    place.mkdir(parents=True)
    return place


def keep_snapshot(path: Path, snapshot: Snapshot) -> None:
    """As `perfkit preflight --diff` reads it; in one step, since a run stands once it is there."""
    write_document(path, {"snapshot": msgspec.to_builtins(snapshot)})


def _hidden(experiment: Experiment, which: int) -> ArmPlan:
    """An arm without what looks like a secret."""
    arm = (experiment.a, experiment.b)[which]
    shown: Any = as_json(replace(experiment.each, subject=arm.subject))["subject"]
    return replace(arm, subject=msgspec.convert(shown, Subject))
