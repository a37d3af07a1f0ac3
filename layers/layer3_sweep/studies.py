"""Ready studies: a question about the bundled engine, as the plan of a sweep that answers it.

A study is a grid like any other: cells of settings, interleaved repeats, resumable. Cells may name a mix: the
data set that they are loaded with, since what a policy is worth depends on what arrives. Each cell is
compared with the one that differs from it in one setting alone (`study.compared`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from layers.collectors.load.plan import EndpointChoice, Extent, Load
from layers.layer3_sweep.protocol import MIX, SweepPlan, passes_of
from layers.layer3_sweep.subject import Subject
from parsers.errors import UsageError

SHAPES = ("short-heavy", "uniform", "long-heavy")
LONGEST, LONGEST_QUICK = 20, 10
"""Words. 20 are about the most that a decoder of size `small` has positions for; half of them serve twice as
many requests a second."""
POLICIES = ("per-stage", "unified", "per-stage-length-aware")
START_S = 8.0
"""About what a start of the engine takes, captures of its graphs included."""


@dataclass(frozen=True, slots=True)
class Study:
    """`question` in a sentence; `engine` are the options that it is started with. Settings of cells go from
    the slowest to the fastest to change: those of `at_start` take a restart. `reference`: the value of each
    setting that others are compared with. `cannot`: what its numbers do not say, whatever they are."""

    name: str
    question: str
    engine: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    at_start: frozenset[str]
    mixes: Mapping[str, str]
    concurrency: int
    repeats: int
    seconds: float
    warmup_s: float
    cannot: tuple[str, ...]

    @property
    def reference(self) -> dict[str, str]:
        """The first value of each setting; a mix is another load and no setting."""
        return {name: values[0] for name, values in self.settings.items()}

    @property
    def cells(self) -> tuple[Mapping[str, str], ...]:
        """Every combination with every mix, so that the server changes as seldom as can be."""
        names = (*self.settings, MIX)
        values = product(*self.settings.values(), self.mixes)
        return tuple(dict(zip(names, one, strict=True)) for one in values)


def mixes(shapes: Sequence[str], longest: int) -> dict[str, str]:
    """Data sets by shape. The same items in every cell: no cache of the engine knows equal texts, and answers
    can be compared with those of the first cell."""
    return {shape: f"text:{shape},words=1-{longest},same" for shape in shapes}


CANNOT = (
    "An emulated device, one process on one core, is not a GPU: what a larger batch costs there differs. Run "
    "the study on the machine that the answer is for.",
    "One load, in a closed loop: a policy may fare otherwise where fewer wait, or where arrivals do not wait "
    "for answers.",
    "Policies are changed in a running engine, batch sizes by a restart: a repeat is a start for the batch "
    "sizes and not for the policies.",
    "The tail is that of all requests of a mix together: a policy that serves short requests first buys "
    "their time from the long ones.",
)
SCHEDULING = Study(
    name="scheduling",
    question="what do batch sizes of the stages and the scheduling policy do to throughput and tail, by the "
    "lengths that arrive?",
    engine=("--pipeline=tts", "--set=build_workers=8", "--set=build_backlog=64"),
    settings={"max_running_requests": ("8", "4", "16"), "vocoder_max_batch": ("8", "2"), "policy": POLICIES},
    at_start=frozenset({"max_running_requests", "vocoder_max_batch"}),
    mixes=mixes(SHAPES, LONGEST),
    concurrency=24,
    repeats=3,
    seconds=12.0,
    warmup_s=2.0,
    cannot=CANNOT,
)
QUICK = Study(
    name="scheduling:quick",
    question=SCHEDULING.question,
    engine=SCHEDULING.engine,
    settings={"max_running_requests": ("4", "8"), "policy": POLICIES},
    at_start=SCHEDULING.at_start,
    mixes=mixes(("short-heavy", "long-heavy"), LONGEST_QUICK),
    concurrency=16,
    repeats=2,
    seconds=3.0,
    warmup_s=1.0,
    cannot=(
        *CANNOT,
        "The quick form: two short repeats, no uniform lengths, one batch size of the vocoder. It shows "
        "large differences and hints at others.",
    ),
)
STUDIES = {one.name: one for one in (SCHEDULING, QUICK)}


def study_named(name: str) -> Study:
    """UsageError, with those that there are, for any other."""
    if name not in STUDIES:
        raise UsageError(f"--study {name}: there are {', '.join(STUDIES)}")
    return STUDIES[name]


def plan_of_study(
    study: Study,
    *,
    repeats: int | None = None,
    seconds: float | None = None,
    time_budget_s: float | None = None,
    sample: bool = True,
    drain_s: float = 60.0,
) -> SweepPlan:
    """The sweep that runs it, with more (or fewer) repeats and seconds of each pass where that is asked."""
    return SweepPlan(
        subject=Subject(engine=study.engine),
        control=None,
        endpoint=EndpointChoice("speech"),
        data=next(iter(study.mixes.values())),
        loads=(Load(concurrency=study.concurrency),),
        repeats=study.repeats if repeats is None else repeats,
        extent=Extent(duration_s=seconds or study.seconds, warmup_s=study.warmup_s, drain_s=drain_s),
        cells=study.cells,
        time_budget_s=time_budget_s,
        sample=sample,
        mixes=dict(study.mixes),
        study=study.name,
    )


def starts_of(plan: SweepPlan, study: Study) -> int:
    """How often the engine is started for all passes of a plan."""
    cells = [plan.cells[key.cell] for key in passes_of(plan)]
    taken = [tuple(cell[name] for name in sorted(study.at_start & cell.keys())) for cell in cells]
    return bool(taken) + sum(before != after for before, after in pairwise(taken))
