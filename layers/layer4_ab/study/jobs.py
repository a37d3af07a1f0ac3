"""What a study has to do, in order, and about how long each piece takes. Pure.

    rounds 1 and 2      every configuration, forwards and backwards
    evidence            stage events and stacks of the configurations that are looked at closely, once
    answers             of the same
    further rounds      forwards and backwards in turn

So a study that is ended early, or has a budget, has something of everything first. Going forwards and
backwards makes A run first as often as B in the pairs of every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from layers.layer4_ab.study.steps import ON, Configuration, Way, configurations, steps
from layers.layer4_ab.study.studies import Study, StudyLoad

AROUND_A_RUN_S = 3.0
"""About what samplers take to begin and end."""
AROUND_A_START_S = 3.0
"""About what two looks at the machine and taking a server down take."""
WARM_S = 2.0
"""Of the load beside stage events or stacks, each."""
A_CELL_S = 3.0
"""About what 20 items take in one cell of the answers."""
FIRST_ROUNDS = 2
AGAIN = "again"
"""The reference of a load asked once more, as an arm of its answers."""


class Kind(StrEnum):
    """What a job records."""

    ROUND = "round"
    EVIDENCE = "evidence"
    ANSWERS = "answers"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece: it stands whole or is done again. `number` is the round's, 0 where there is none; `about_s`
    how long it takes."""

    kind: Kind
    load: str
    number: int
    cells: tuple[Configuration, ...]
    about_s: float

    @property
    def name(self) -> str:
        """For its folder: they sort as they ran within a kind."""
        place = f"-{self.cells[0].place}" if len(self.cells) == 1 else ""
        return f"{self.kind}-{self.number}-{self.load.replace(' ', '-')}{place}"

    @property
    def text(self) -> str:
        """`round 2, speech, baseline`."""
        number = f" {self.number}" if self.number else ""
        cells = self.cells[0].name if len(self.cells) == 1 else f"{len(self.cells)} configurations"
        return f"{self.kind}{number}, {self.load}, {cells}"

    @property
    def starts(self) -> int:
        """Server starts; each arm of answers is one, its reference two."""
        return len(self.cells) + 1 if self.kind is Kind.ANSWERS else 1


def jobs_of(study: Study) -> tuple[Job, ...]:
    """All of them in their order."""
    return (
        *_rounds(study, range(1, min(study.rounds, FIRST_ROUNDS) + 1)),
        *(job for load in study.loads for job in _sessions(study, load, Kind.EVIDENCE, 0)),
        *(_answers(study, load) for load in study.loads),
        *_rounds(study, range(FIRST_ROUNDS + 1, study.rounds + 1)),
    )


def beside(study: Study, load: StudyLoad) -> tuple[Configuration, ...]:
    """The configurations of a load of which evidence and answers are recorded, the reference (everything on)
    first."""
    own = [one for one in configurations(study) if one.load == load.name]
    left = [step.a for step in steps(study) if step.way in (Way.LEFT_OUT, Way.BOTH)]
    reference = [one for one in own if one.name == ON]
    return (*reference, *(one for one in own if one.name != ON and (study.rungs_too or one in left)))


def planned_text(study: Study, left: Sequence[Job]) -> str:
    """`14 configurations in 13 steps, 3 rounds: 42 runs …: about 9 min`."""
    runs = sum(len(job.cells) for job in left if job.kind is Kind.ROUND)
    evidence = sum(len(job.cells) for job in left if job.kind is Kind.EVIDENCE)
    arms = sum(job.starts for job in left if job.kind is Kind.ANSWERS)
    starts, about_s = sum(job.starts for job in left), sum(job.about_s for job in left)
    what = f"{len(configurations(study))} configurations in {len(steps(study))} steps, {study.rounds} rounds"
    parts = (
        f"{runs} timed runs of {study.seconds:g} s, {evidence} recordings of evidence, {arms} arms of answers"
    )
    return f"{what}; to do: {parts}; {starts} starts of the engine: about {max(1, round(about_s / 60))} min"


def _rounds(study: Study, numbers: Sequence[int]) -> Iterator[Job]:
    for number in numbers:
        loads = study.loads if number % 2 else tuple(reversed(study.loads))
        for load in loads:
            yield from _sessions(study, load, Kind.ROUND, number)


def _sessions(study: Study, load: StudyLoad, kind: Kind, number: int) -> Iterator[Job]:
    """A server for each configuration, or one for all of a load."""
    own = [one for one in configurations(study) if one.load == load.name]
    if kind is Kind.EVIDENCE:
        own = list(beside(study, load))
    cells = own if number % 2 else own[::-1]
    groups = [(one,) for one in cells] if study.fresh else [tuple(cells)]
    each_s = _run_s(study) if kind is Kind.ROUND else _evidence_s(study)
    for group in groups:
        about_s = study.start_s + AROUND_A_START_S + len(group) * each_s
        yield Job(kind, load.name, number, group, about_s)


def _run_s(study: Study) -> float:
    return study.warmup_s + study.seconds + AROUND_A_RUN_S


def _evidence_s(study: Study) -> float:
    return study.events_s + study.captures * study.capture_s + 2 * (WARM_S + AROUND_A_RUN_S)


def _answers(study: Study, load: StudyLoad) -> Job:
    cells = beside(study, load)
    asked = 2 * len(study.answer_cells) * (2 if study.rungs_too else 1)
    about_s = (len(cells) + 1) * (study.start_s + AROUND_A_START_S + asked * A_CELL_S)
    return Job(Kind.ANSWERS, load.name, 0, cells, about_s)
