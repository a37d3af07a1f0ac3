"""The files of one study, below the artifacts of the investigation, and what of it stands.

study-<date>-<time>/
  study.json                  which study, with the rounds and seconds that were asked for
  sound/                      files that the data sets make
  jobs/<name>/                one job: for a round the folder of a sweep with before.json and after.json,
                              for evidence what was recorded, with one <configuration>.json for each
  regress-<load>/             the answers of a load: a collection of Layer 5
  cut/<name>                  jobs that were cut: they are begun anew
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layers.evidence.documents import read_document, write_document
from layers.layer3_sweep import sweep_folder
from layers.layer3_sweep.journal import read_journal
from layers.layer3_sweep.protocol import passes_of
from layers.layer3_sweep.sweep_folder import JOURNAL
from layers.layer4_ab.experiment_folder import AFTER, put_aside
from layers.layer4_ab.study.jobs import AGAIN, Job, Kind, jobs_of
from layers.layer4_ab.study.studies import Study, study_named
from layers.layer5_regression.collection_folder import cell_path
from layers.layer5_regression.grid import grid
from layers.layer5_regression.separation import OWN
from parsers.loss import Loss

PLAN, JOBS, SOUND, PREFIX = "study.json", "jobs", "sound", "study-"


@dataclass(frozen=True, slots=True)
class Asked:
    """`study.json`: everything else is the study's own."""

    study: str
    rounds: int
    seconds: float
    common: dict[str, str] = field(default_factory=dict)

    def made(self) -> Study:
        """The study as it was asked for; UsageError where there is none of that name."""
        found = study_named(self.study)
        return replace(found, rounds=self.rounds, seconds=self.seconds, common=self.common)


def new_folder(artifacts: Path) -> Path:
    """A new folder for a study that begins now."""
    return sweep_folder.new_folder(artifacts, PREFIX)


def latest_folder(artifacts: Path) -> Path:
    """That of the study that began last; UsageError where there is none."""
    return sweep_folder.latest_folder(artifacts, f"{PREFIX}*/{PLAN}", "study")


def write_study(folder: Path, study: Study) -> None:
    write_document(folder / PLAN, Asked(study.name, study.rounds, study.seconds, dict(study.common)))


def read_study(folder: Path) -> Study:
    """UnreadableInput where it is damaged."""
    return read_document(folder / PLAN, Asked).made()


def job_folder(folder: Path, job: Job) -> Path:
    return folder / JOBS / job.name


def evidence_path(place: Path, key: str) -> Path:
    """What was recorded of one configuration."""
    return place / f"{key}.json"


def answers_folder(folder: Path, load: str) -> Path:
    """Named as Layer 5 names its own: its items are none that sweeps or A/Bs have sent."""
    return folder / f"{OWN}{load.replace(' ', '-')}"


def answer_arms(job: Job) -> list[str]:
    """The arms of a job's answers, by name: the reference, the others, the reference again."""
    return [*(one.key for one in job.cells), AGAIN]


def stands(folder: Path, study: Study, job: Job) -> bool:
    """Whether a job is done."""
    place = job_folder(folder, job)
    if job.kind is Kind.EVIDENCE:
        return all(evidence_path(place, one.key).is_file() for one in job.cells)
    if job.kind is Kind.ANSWERS:
        arms = [answers_folder(folder, job.load) / name for name in answer_arms(job)]
        cells = range(len(grid(study.answer_cells, streams_of(study), starts=True)))
        return all(cell_path(arm, cell).is_file() for arm in arms for cell in cells)
    losses: list[Loss] = []  # they are told when the round is read back
    done = read_journal(place / JOURNAL, losses)
    plan = study.plan(study.load(job.load), tuple(dict(one.settings) for one in job.cells))
    return all(done.ended(key) for key in passes_of(plan)) and (place / AFTER).is_file()


def left_to_do(folder: Path, study: Study) -> list[Job]:
    """The jobs that do not stand yet."""
    return [job for job in jobs_of(study) if not stands(folder, study, job)]


def streams_of(study: Study) -> Sequence[bool]:
    """Whole answers, and streamed ones where all is asked."""
    return (False, True) if study.rungs_too else (False,)


def begin_job(folder: Path, job: Job) -> Path:
    """An empty folder for a job; what an earlier try left there is put aside."""
    return put_aside(folder, job_folder(folder, job))
