"""Are the answers of a step's arms the same? By Layer 5: its collecting, its comparison, its guards.

The reference of a load is the configuration with everything on. It is asked twice, in two starts, which shows
that it repeats itself; every other configuration is asked once and compared with it byte by byte. The arms of
a step have the same answers where each has those of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice
from layers.evidence.result import Result
from layers.evidence.wording import first_few
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer4_ab.study.folder import SOUND, answers_folder, streams_of
from layers.layer4_ab.study.jobs import AGAIN, Job, Kind, jobs_of
from layers.layer4_ab.study.steps import Configuration, Step
from layers.layer4_ab.study.studies import Study, StudyLoad
from layers.layer5_regression.analyse import analyse
from layers.layer5_regression.collect import Watcher, collect
from layers.layer5_regression.collected import is_collected, read_collected
from layers.layer5_regression.collection_plan import SEED, ArmPlan, CollectionPlan
from layers.layer5_regression.grid import grid
from layers.layer5_regression.judge import judge
from layers.layer5_regression.model import Arm, Options
from layers.layer5_regression.proofs import proofs_of
from layers.layer5_regression.separation import contents_of, data_facts, earlier_contents
from layers.layer5_regression.thresholds import Word

NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Compared:
    """One configuration against the reference of its load."""

    key: str
    name: str
    result: Result

    @property
    def word(self) -> str:
        return str(self.result.verdict.word)

    @property
    def text(self) -> str:
        """`without lookahead: identical: …`."""
        doubt = "?" if self.result.verdict.directional else ""
        return f"{self.name}: {self.word}{doubt}, {self.result.verdict.because}"


@dataclass(frozen=True, slots=True)
class Answers:
    """Those of a step: one word over its arms, and how it came about."""

    word: str
    because: str
    samples: int = 0
    different: int = 0


def ask(study: Study, folder: Path, job: Job, watcher: Watcher, told: Callable[[], bool]) -> str:
    """Ask what is not asked yet of a load; why it ended before its last cell, empty where it did not."""
    place = answers_folder(folder, job.load)
    place.mkdir(exist_ok=True)
    return collect(_plan(study, job), place, _items(study, study.load(job.load), folder), watcher, {}, told)


def read_answers(folder: Path, study: Study, investigation: Path) -> Mapping[str, Compared]:
    """Every configuration whose answers, and the reference's twice, are there; by its key."""
    found: dict[str, Compared] = {}
    for job in jobs_of(study):
        if job.kind is Kind.ANSWERS:
            found |= _read_load(folder, study, job, investigation)
    return found


def of_step(step: Step, known: Mapping[str, Compared], reference: str) -> Answers:
    """What the comparisons of both arms come to; `reference` is the key of the configuration that is it."""
    arms = [one for one in (step.a, step.b) if one.key != reference]
    missing = [one.name for one in arms if one.key not in known]
    if missing:
        return Answers(NOT_ASKED, f"answers were not asked of {first_few(missing)}")
    compared = [known[one.key] for one in arms]
    words = [one.word for one in compared]
    worst = max(words, key=WORST.index)
    counts = [one.result.sections for one in compared]
    return Answers(
        word=worst,
        because=first_few(one.text for one in compared if one.word == worst),
        samples=sum(one["compared"] for one in counts),
        different=sum(one["different"] for one in counts),
    )


WORST = [str(word) for word in (Word.IDENTICAL, Word.EQUIVALENT, Word.INVALID, Word.DIFFERENT)]
"""From the best: the answers of a step are as good as those of its worse arm."""


def _plan(study: Study, job: Job) -> CollectionPlan:
    load = study.load(job.load)
    subject = study.subject(load)
    reference = job.cells[0]
    arms = [ArmPlan(one.key, subject, dict(one.settings)) for one in job.cells]
    streams = streams_of(study)
    return CollectionPlan(
        arms=(*arms, ArmPlan(AGAIN, subject, dict(reference.settings))),
        endpoint=EndpointChoice(load.endpoint, stream=streams[0]),
        data=study.answers(load),
        cells=grid(study.answer_cells, streams, starts=True),
    )


def _items(study: Study, load: StudyLoad, folder: Path) -> list[Item]:
    items = list(data_set(study.answers(load), folder / SOUND, SEED).measured(""))
    endpoint_for(EndpointChoice(load.endpoint)).check(items)
    return items


def _read_load(folder: Path, study: Study, job: Job, investigation: Path) -> dict[str, Compared]:
    place = answers_folder(folder, job.load)
    arms = {name: place / name for name in (*(one.key for one in job.cells), AGAIN)}
    read = {name: read_collected(name, at) for name, at in arms.items() if is_collected(str(at))}
    reference, *others = job.cells
    if reference.key not in read or AGAIN not in read:
        return {}
    items = _items(study, study.load(job.load), folder)
    options = Options(data=data_facts(contents_of(items), earlier_contents(investigation)))
    return {one.key: _compared(one, reference, read, options) for one in others if one.key in read}


def _compared(
    one: Configuration, reference: Configuration, read: Mapping[str, Arm], options: Options
) -> Compared:
    """Each arm has to show that the path ran of the switches in which the two differ."""
    changed = [name for name, value in one.settings.items() if reference.settings[name] != value]
    arms = [
        _proving(read[key], {name: of.settings[name] for name in changed})
        for key, of in ((reference.key, reference), (one.key, one), (AGAIN, reference))
    ]
    named = (replace(arm, name=name) for arm, name in zip(arms, ("A", "B", "A'"), strict=True))
    a, b, again = named
    return Compared(one.key, one.name, judge(analyse(a, b, again, options)))


def _proving(arm: Arm, settings: Mapping[str, str]) -> Arm:
    assert arm.recorded is not None  # perfkit asked it
    return replace(arm, recorded=replace(arm.recorded, declared=settings, proofs=proofs_of(settings)))


def references(study: Study) -> dict[str, str]:
    """The key of the reference of each load."""
    found: Sequence[Job] = [job for job in jobs_of(study) if job.kind is Kind.ANSWERS]
    return {job.load: job.cells[0].key for job in found}
