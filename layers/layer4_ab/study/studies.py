"""Ready studies of switches, as data: loads, rounds, lengths. `perfkit ab --study NAME` runs one.

A configuration is measured once a round and compared with every other from which it differs by one switch, so
that a ladder and leave-one-out share their arms. In `optimizations` every configuration has a fresh server in
every round; in its quick form a server is started once a round for each load, and its switches are changed
while it runs: then two arms of a pair are one server, and a pair is one start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layers.collectors.load.plan import EndpointChoice, Extent, Load
from layers.layer3_sweep.protocol import SweepPlan
from layers.layer3_sweep.subject import Subject
from layers.layer4_ab.study.switches import ASR, ENGINE_SWITCHES, NEW_AUDIO, SAME_AUDIO, SPEECH, TTS, Switch
from parsers.errors import UsageError

DRAIN_S = 60.0
TINY = "tiny"
"""A size of the engine's models (docs/engine.md) that takes no long items."""
MARGIN = 0.05
"""Up to this much more or less is called equivalent, where all of what is likely lies within: as the study of
scheduling. perfkit's choice."""


@dataclass(frozen=True, slots=True)
class StudyLoad:
    """What is sent in timed runs (`data`) and, other items and longer ones, for the comparison of answers: by
    the size of the engine's models, "" for all without an entry."""

    name: str
    pipeline: str
    endpoint: str
    data: str
    answers: Mapping[str, str]
    concurrency: int


LOADS = (
    StudyLoad(
        name=SPEECH,
        pipeline=TTS,
        endpoint="speech",
        data="text:uniform,words=3-8,same",
        answers={
            "": "text:long-heavy,words=9-16,same,items=20",
            TINY: "text:long-heavy,words=2-8,same,items=20",
        },
        concurrency=8,
    ),
    StudyLoad(
        name=NEW_AUDIO,
        pipeline=ASR,
        endpoint="transcriptions",
        data="audio:uniform,seconds=1-3",
        answers={
            "": "audio:long-heavy,seconds=3-6,plain,items=20",
            TINY: "audio:long-heavy,seconds=1-2.5,plain,items=20",
        },
        concurrency=8,
    ),
    StudyLoad(
        name=SAME_AUDIO,
        pipeline=ASR,
        endpoint="transcriptions",
        data="audio:uniform,seconds=1-3,plain,items=8,seed=3",
        answers={
            "": "audio:long-heavy,seconds=3-6,plain,items=20,seed=9",
            TINY: "audio:long-heavy,seconds=1-2.5,plain,items=20,seed=9",
        },
        concurrency=8,
    ),
)
"""8 at a time: enough rows for lookahead (2 are the least) and for chunks that wait at once, and few enough
that a step is bound by launching it (docs/engine.md: with 32 rows the device has caught up)."""


@dataclass(frozen=True, slots=True)
class Study:
    """`rounds` of every configuration, of `seconds` each behind `warmup_s`; `fresh`: a server of its own for
    each. `events_s` of stage events and `captures` of stacks of `capture_s` are recorded of a configuration
    once, beside the timed runs. `answer_cells`: so many at a time, when answers are compared. Evidence and
    answers are those of everything on, and of each left out; `rungs_too`: of the ladder's rungs as well.
    `common` are settings that all configurations share."""

    name: str
    question: str
    rounds: int
    seconds: float
    warmup_s: float
    fresh: bool
    events_s: float
    capture_s: int
    captures: int
    answer_cells: tuple[int, ...]
    rungs_too: bool
    start_s: float
    cannot: tuple[str, ...]
    loads: tuple[StudyLoad, ...] = LOADS
    switches: tuple[Switch, ...] = ENGINE_SWITCHES
    common: Mapping[str, str] = field(default_factory=dict)
    margin: float = MARGIN

    def load(self, name: str) -> StudyLoad:
        """By its name."""
        return next(one for one in self.loads if one.name == name)

    def plan(self, load: StudyLoad, cells: tuple[dict[str, str], ...]) -> SweepPlan:
        """One server start and its cells, as a sweep of one load and one repeat."""
        return SweepPlan(
            subject=self.subject(load),
            control=None,
            endpoint=EndpointChoice(load.endpoint),
            data=load.data,
            loads=(Load(concurrency=load.concurrency),),
            repeats=1,
            extent=Extent(duration_s=self.seconds, warmup_s=self.warmup_s, drain_s=DRAIN_S),
            cells=cells,
        )

    def subject(self, load: StudyLoad) -> Subject:
        """The engine as it is started, without its switches."""
        common = (f"--set={name}={value}" for name, value in self.common.items())
        return Subject(engine=(f"--pipeline={load.pipeline}", "--allow-profilers", *common))

    def answers(self, load: StudyLoad) -> str:
        """The data set of a load's answers."""
        return load.answers.get(self.common.get("size", ""), load.answers[""])


QUESTION = "what is each of the engine's six switches worth here, what does it let run, what does it cost?"
CANNOT = (
    "Steps that share a configuration share its runs: a slow start of one shows in two or three of them.",
    "An emulated device is one process on one core, not a GPU: what a launch, a wait and a batch cost there "
    "differs. Run the study on the machine that the answer is for.",
    "One load of 8 at a time, in a closed loop: lookahead and shared launches have less to win with fewer, "
    "graphs less with many more.",
    "A stage's share of a request's time does not bound what a switch can win: stages share one interpreter "
    "and one device, so time saved in one is given to the others.",
)
OPTIMIZATIONS = Study(
    name="optimizations",
    question=QUESTION,
    rounds=4,
    seconds=12.0,
    warmup_s=2.0,
    fresh=True,
    events_s=10.0,
    capture_s=8,
    captures=3,
    answer_cells=(1, 4, 5),
    rungs_too=True,
    start_s=10.0,
    cannot=CANNOT,
)
QUICK = Study(
    name="optimizations:quick",
    question=QUESTION,
    rounds=3,
    seconds=2.5,
    warmup_s=0.5,
    fresh=False,
    events_s=2.5,
    capture_s=3,
    captures=1,
    answer_cells=(4,),
    rungs_too=False,
    start_s=8.0,
    cannot=(
        *CANNOT,
        "The quick form: three short rounds, and in each a server whose switches are changed while it runs "
        "(a pair is one start). What a start costs is not in it, one capture of stacks is a hint, and "
        "stacks, events and answers are those of the switch left out, not of the rungs of the ladder.",
    ),
)
STUDIES = {one.name: one for one in (OPTIMIZATIONS, QUICK)}


def study_named(name: str) -> Study:
    """UsageError, with those that there are, for any other."""
    if name not in STUDIES:
        raise UsageError(f"--study {name}: there are {', '.join(STUDIES)}")
    return STUDIES[name]
