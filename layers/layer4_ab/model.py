"""What Layer 4 passes on: rounds (one run at one load), starts (the unit), pairs, and what they show.

Ratios are B over A. They are logs where they are computed with, and ratios where they are told. A round that
was left out stays in the analysis with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layers.collectors.load.plan import Load
from layers.evidence.measurement import Artifact
from layers.layer2_stacks.model import Share
from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab.blocks import Blocks
from layers.layer4_ab.distribution import Points
from layers.layer4_ab.floors import Floor
from layers.layer4_ab.logs import ratio_of
from layers.layer4_ab.order import Shift


class Arm(StrEnum):
    """A is what is compared with, B what is tried; AGAIN are further runs of one of them, for the floor."""

    A = "a"
    B = "b"
    AGAIN = "aa"


class StartsAre(StrEnum):
    """What in recorded results is one start of a server: files do not say."""

    FILE = "file"
    RUN = "run"
    ARM = "arm"


class DropFirst(StrEnum):
    """When the first round is left out of both arms."""

    RULE = "rule"
    """where it is an outlier among the rest"""
    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a run. `of` gives it, None where the run has none, or its n does not allow it."""

    name: str
    unit: str
    more_is_better: bool
    of: Callable[[SweepPass], float | None]


@dataclass(frozen=True, slots=True)
class Round:
    """One run of one server start at one load, numbered from 1 in the order of its start.

    `facts` say how it was made and is to be compared by (tool, model, settings), `data` what it was asked.
    `begun_ns` and `ended_ns` are on the wall clock, None where nothing tells. `excluded`: why it enters no
    mean. `ecdf_ms` is the distribution of its times, where single requests are told. `record` is what the
    recording is known by wherever it lies; empty where nothing tells it from another.
    """

    arm: Arm
    start: str
    number: int
    swept: SweepPass
    facts: Mapping[str, str]
    data: Mapping[str, float]
    begun_ns: int | None = None
    ended_ns: int | None = None
    excluded: str = ""
    ecdf_ms: Mapping[str, Points] = field(default_factory=dict)
    record: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """All rounds of one arm. `counters`: by how much each counter of its servers grew, where they were
    sampled; `lost`: what could not be read; `changes`: what of the machine was not as at first."""

    rounds: tuple[Round, ...]
    lost: tuple[str, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    starts_told: bool = False
    """whether the recording itself says which runs shared a server"""
    changes: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    """of its servers, by path, where perfkit started them"""
    ended_early: str = ""
    """why the experiment ended before its last run, where perfkit ran one and it did"""
    hot: bool = False
    """whether the two runs of a pair shared a server, whose settings were changed"""


@dataclass(frozen=True, slots=True)
class Start:
    """One server start: its rounds at the load of the question, in their order, those left out included."""

    arm: Arm
    name: str
    rounds: tuple[Round, ...]

    @property
    def kept(self) -> tuple[Round, ...]:
        """The rounds that count."""
        return tuple(one for one in self.rounds if not one.excluded)

    @property
    def begun_ns(self) -> int | None:
        """When its first round began."""
        return self.rounds[0].begun_ns

    def log(self, metric: Metric) -> float | None:
        """The log of the mean of its rounds; None where one that counts lacks the metric."""
        values = [metric.of(one.swept) for one in self.kept]
        told = [value for value in values if value is not None and 0 < value < math.inf]
        return math.log(math.fsum(told) / len(told)) if told and len(told) == len(values) else None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two starts that are compared; `a_first`: whether A ran before B, None where nothing tells."""

    a: Start
    b: Start
    a_first: bool | None


class Call(StrEnum):
    """What the rule says of one metric."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric at one load over all pairs that have it.

    `logs` are the pairs' log-ratios; `low`, `high` and everything after them None with a single pair.
    `floor` is the highest of all floors, as a log-ratio; `needed` the pairs that would detect an effect of
    `wanted`, None where more than are worth it. `p_adjusted`: by Holm, over the metrics beside the primary.
    """

    metric: Metric
    load: Load
    pairs: int
    a: tuple[float, ...]
    b: tuple[float, ...]
    logs: tuple[float, ...]
    mean: float
    low: float | None
    high: float | None
    spread: float | None
    repeat_spread: float | None
    floor: float | None
    p: float | None
    call: Call
    detectable: float | None
    wanted: float | None = None
    needed: int | None = None
    p_adjusted: float | None = None

    @property
    def ratio(self) -> float:
        """B over A, geometric mean over the pairs."""
        return ratio_of(self.mean)

    @property
    def gain(self) -> float:
        """The log-ratio with the sign of the metric: above 0 is better."""
        return self.mean if self.metric.more_is_better else -self.mean

    @property
    def clear_of_zero(self) -> bool:
        """Whether the interval lies to one side of no difference."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def claimed(self) -> bool:
        """Whether a difference is claimed."""
        return self.call in (Call.BETTER, Call.WORSE)


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same in both arms."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Count:
    """How often something was seen in each arm: `name` is the pattern or counter, `where` what was looked
    at."""

    name: str
    a: float
    b: float
    where: str

    @property
    def text(self) -> str:
        """`async decode steps: 0 -> 635 (lines of the servers' logs)`."""
        return f"{self.name}: {self.a:,.10g} → {self.b:,.10g} ({self.where})"


@dataclass(frozen=True, slots=True)
class StageShare:
    """The stage that was improved and its share of a request's time in A, None where nothing tells it;
    `where` says by what it is known, or why it is not."""

    stage: str
    share: float | None
    where: str


@dataclass(frozen=True, slots=True)
class LeafShare:
    """One suspect in both arms, of ticks of its thread (waits below it included); `low` and `high` enclose
    the difference, B less A, at 95 %."""

    place: str
    mode: str
    thread: str
    before: Share
    after: Share
    low: float
    high: float

    @property
    def unchanged(self) -> bool:
        """Whether nothing shows that it moved."""
        return self.low <= 0 <= self.high

    @property
    def text(self) -> str:
        """`keys.py:61: 31.2 % [28.0, 34.6] → 0 of 600 ticks, at most 0.50 % (idle)`."""
        return f"{self.place}: {_told(self.before)} → {_told(self.after)} ({self.mode})"


@dataclass(frozen=True, slots=True)
class LeafEvidence:
    """Shares of the suspects in both arms; `problems`: why there are none, or fewer; the captures of each."""

    shares: tuple[LeafShare, ...]
    problems: tuple[str, ...]
    of_a: tuple[Artifact, ...]
    of_b: tuple[Artifact, ...]

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Of both arms."""
        return (*self.of_a, *self.of_b)


def _told(share: Share) -> str:
    if not share.hits:
        return f"0 of {share.ticks:,} ticks, at most {100 * share.high:.2g} %"
    low, high = 100 * share.low, 100 * share.high
    return f"{100 * share.value:.1f} % [{low:.1f}, {high:.1f}] of {share.ticks:,} ticks"


class GateState(StrEnum):
    """How a gate stands. What was not looked at is not passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SHOWN = "not-shown"


@dataclass(frozen=True, slots=True)
class Gate:
    """One of the three that make a change safe."""

    state: GateState
    because: str


@dataclass(frozen=True, slots=True)
class Question:
    """What was declared before. `margin` and `stage_share` as shares; `variable`: the fact that may differ,
    `derived` those that follow from it; `detect`: the effect that is wanted to be seen, as a share."""

    metric: str = ""
    load: float | None = None
    margin: float | None = None
    detect: float | None = None
    variable: str = ""
    derived: tuple[str, ...] = ()
    drop_first: DropFirst = DropFirst.RULE
    starts: StartsAre = StartsAre.FILE
    stage: str = ""
    stage_share: float | None = None
    ran: tuple[str, ...] = ()
    unblocked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AbAnalysis:
    """Everything that is known of one A/B.

    `primary` is None where no pair has the metric. `others` are further metrics at the same load, `elsewhere`
    the primary metric at other loads; Holm's family is both. `unpaired` starts have no partner; `first_round`
    says which first rounds were left out. `two_states` names arms whose runs form two groups. `output` is how
    much of an answer a request got, which is to be the same. `foreign_floor`: in what the A/A runs are like
    neither arm; they set no floor then.
    """

    question: Question
    a: Recorded
    b: Recorded
    again: Recorded | None
    load: Load
    pairs: tuple[Pair, ...]
    starts: tuple[Start, ...]
    unpaired: tuple[Start, ...]
    one_sided_loads: tuple[str, ...]
    first_round: str
    two_states: tuple[str, ...]
    floors: tuple[Floor, ...]
    primary: Effect | None
    others: tuple[Effect, ...]
    elsewhere: tuple[Effect, ...]
    output: Effect | None
    untold_tails: tuple[str, ...]
    drift: Shift | None
    order_effect: Shift | None
    differences: tuple[Difference, ...]
    data_differences: tuple[Difference, ...]
    treatment: tuple[Count, ...]
    unblocked: tuple[Count, ...]
    gates: Mapping[str, Gate]
    stage: StageShare | None = None
    leaf: LeafEvidence | None = None
    blocks: tuple[Blocks, ...] = ()
    foreign_floor: tuple[Difference, ...] = ()

    @property
    def effects(self) -> tuple[Effect, ...]:
        """All of them, the primary first."""
        return (*([self.primary] if self.primary else []), *self.others, *self.elsewhere)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Those of the question, of both arms."""
        return tuple(one for start in self.starts for one in start.rounds)
