"""What the stage ledger passes on: intervals of requests, rows of a run, and the analysis of all runs.

Times of intervals are integer nanoseconds on the log's clock; of rows they are milliseconds. A row of a
published table has a mean and a share alone: what was not measured is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from layers.evidence.guard import Checked
from layers.evidence.measurement import Artifact


class Kind(StrEnum):
    """What a request does in an interval; the names of the JSON contract."""

    QUEUE = "queue"
    BUILD = "build"
    FIRST_FORWARD = "first_forward"
    DECODE = "decode"
    SERVICE = "service"
    HOP = "hop"


WORK = (Kind.BUILD, Kind.FIRST_FORWARD, Kind.DECODE, Kind.SERVICE)
"""Kinds in which something is done for the request."""


MOST_IDLE = 0.999
"""So that a run that is all pause has a load."""
INTENDED = "intended"
SPLIT = (Kind.FIRST_FORWARD, Kind.DECODE, Kind.SERVICE, Kind.BUILD, Kind.QUEUE, INTENDED, Kind.HOP)
"""Where several run at once, the first of these has the time. `intended`: waits that are meant."""


class Interval(NamedTuple):
    """One stretch of one request in one stage. `part` tells intervals of a kind apart; `batch`: requests that
    were worked on together (0: not told); `intended`: a wait that is meant; `to`: the
    stage that a hop leads to, else the stage itself."""

    stage: str
    kind: Kind
    part: str
    start_ns: int
    end_ns: int
    batch: int = 0
    intended: bool = False
    to: str = ""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


class Source(StrEnum):
    """What a ledger was made of."""

    EVENTS = "events"
    """times of single requests"""
    TABLE = "table"
    """published means"""
    HISTOGRAMS = "histograms"
    """a server's own, between two pages of its metrics"""


class Outcome(StrEnum):
    """What became of a request within the log."""

    COMPLETE = "complete"
    SHED = "shed"
    """refused: by its status, or left without any work while later ones were worked on"""
    FAILED = "failed"
    CUT = "cut"
    """the log begins after its beginning or ends before its end"""


@dataclass(frozen=True, slots=True)
class TimedRequest:
    """One request: its span, what became of it, and its intervals. `told`: the log itself says what became of
    it. `length`: of its input, in the unit of its run (None: not told)."""

    request: str
    start_ns: int
    end_ns: int
    outcome: Outcome
    intervals: tuple[Interval, ...]
    told: bool = True
    length: float | None = None

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Row:
    """All intervals of one stage, kind and part over the complete requests. `share`: of their end-to-end time
    that these intervals cover; `held`: how many are in it at a time, on average. Quantiles are None where n
    does not allow them; of a server's histograms the bucket is known in which they lie (`within_ms`, by
    quantile: from, and to; None where it has no end)."""

    stage: str
    kind: Kind
    part: str
    n: int | None
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    max_ms: float | None
    share: float
    held: float | None
    intended: bool = False
    total_ms: float | None = None
    within_ms: Mapping[str, tuple[float, float | None]] | None = None


@dataclass(frozen=True, slots=True)
class StageQueue:
    """What waits in one stage: `share` of end-to-end time in which a request waits there and nothing works on
    it; `hop_share`: the same of hops that lead to it, beyond that; `work_share`: time in which the stage
    works on it. `position` from 0 in the order of the pipeline."""

    stage: str
    share: float
    hop_share: float
    work_share: float
    position: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of a run by what became of them; `shed_told`: of the shed ones, those that the log says so
    of."""

    complete: int
    shed: int
    failed: int
    cut: int
    shed_told: int

    @property
    def all(self) -> int:
        return self.complete + self.shed + self.failed + self.cut


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Little's law of one stage (or of the whole, stage "") over the middle half of a run: `held` as
    integrated, against `arrivals_per_s` · `time_ms`."""

    stage: str
    arrivals: int
    arrivals_per_s: float
    time_ms: float
    held: float

    @property
    def ratio(self) -> float:
        """1 in a steady state."""
        return self.arrivals_per_s * self.time_ms / 1000 / self.held


@dataclass(frozen=True, slots=True)
class BatchFit:
    """Service time against batch size in a stage: a + b · B^p (ms), over mean times by size. `best_batch` has
    the highest B / time of the law up to twice the largest seen; `gain` is that rate over the rate at the
    commonest batch, less 1."""

    stage: str
    kind: Kind
    a_ms: float
    b_ms: float
    p: float
    r2: float
    batches: int
    by_size: tuple[tuple[int, int, float], ...]
    """(size, batches of it, mean ms)"""
    best_batch: int
    beyond_seen: bool
    usual_batch: int
    gain: float


@dataclass(frozen=True, slots=True)
class SlowItem:
    """Intervals of a kind of work that took SLOW_TIMES their median or longer, and how long others of the
    stage waited meanwhile, as a share of all waiting there."""

    stage: str
    kind: Kind
    count: int
    n: int
    median_ms: float
    max_ms: float
    request: str
    waiting_share: float


@dataclass(frozen=True, slots=True)
class HeadOfLine:
    """Built requests that waited for the queue while an earlier one was still built: `share` of all waiting
    between build and queue."""

    stage: str
    held: int
    n: int
    share: float
    mean_ms: float


@dataclass(frozen=True, slots=True)
class Tail:
    """The slowest of `n` complete requests: from the `quantile` on, `slow` of them. `long_share`: those of
    them that worked far longer than usual, or waited beside such work. `joins_*`: first forwards of others
    that begin in a second of decoding. None: not logged."""

    quantile: float
    n: int
    slow: int
    p50_ms: float
    at_ms: float
    long_share: float | None
    joins_slow: float | None
    joins_others: float | None

    @property
    def ratio(self) -> float:
        """Of the quantile over the median."""
        return self.at_ms / self.p50_ms if self.p50_ms else 0.0


@dataclass(frozen=True, slots=True)
class ShortWaits:
    """The shortest quarter of the requests, told apart `by` input length or their own work: mean times, and
    how much of their waiting lay beside work of the longest quarter in the same stage, against what it would
    be at any time."""

    by: str
    n: int
    work_ms: float
    wait_ms: float
    beside_share: float
    expected_share: float


@dataclass(frozen=True, slots=True)
class Service:
    """What was measured of the server while a ledger was recorded; None: not measured. `device_busy` is a
    share by `device_metric`, of `device_n` samples. `retries`: allocations that failed and were tried again,
    by stage; `kv_share` the mean use of the KV cache."""

    device_busy: float | None = None
    device_metric: str = ""
    device_n: int = 0
    retries: Mapping[str, float] | None = None
    preemptions: float | None = None
    kv_share: float | None = None


@dataclass(frozen=True, slots=True)
class RunLedger:
    """One run. `in_flight` is the mean over its window, `concurrency` what a table names.

    All shares are of the end-to-end time of complete requests. `split` gives each moment to one kind, work
    before waits and waits before hops (`SPLIT`); with the residual it adds up to 1. `overlap_share`: by how
    much intervals that run at once exceed the time that they cover. `silence_share`: of the time of
    requests, in the longest silence; `idle_share`: of the window, without any request; `reused_ids`: requests
    whose id an earlier one had, `mixed`: those whose events may be another's of their id. `enclosing`: times
    that hold those of `rows` and are in no share. `pids`: the processes that log each stage's events;
    `began_ns`, `ended_ns`: the first and the last event, where its clock counts from 1970.
    """

    run: str
    counts: Counts
    window_ms: float | None
    in_flight: float | None
    e2e_ms: Row
    rows: tuple[Row, ...]
    queues: tuple[StageQueue, ...]
    split: Mapping[str, float]
    residual_share: float
    overlap_share: float
    artifacts: tuple[Artifact, ...]
    concurrency: int | None = None
    steadiness: tuple[Steadiness, ...] = ()
    fits: tuple[BatchFit, ...] = ()
    slow: tuple[SlowItem, ...] = ()
    head_of_line: tuple[HeadOfLine, ...] = ()
    unknown_events: Mapping[str, int] | None = None
    negative_hops: int = 0
    longest_silence_ms: float = 0.0
    silence_share: float = 0.0
    idle_share: float = 0.0
    reused_ids: int = 0
    mixed: int = 0
    first_output_ends_prefill: bool = False
    source: Source = Source.EVENTS
    tail: Tail | None = None
    short: ShortWaits | None = None
    enclosing: tuple[Row, ...] = ()
    pids: Mapping[str, tuple[int, ...]] | None = None
    began_ns: int | None = None
    ended_ns: int | None = None

    @property
    def queue_share(self) -> float:
        """Time in which a request waits, unintended, and nothing works on it."""
        return self.split[Kind.QUEUE]

    @property
    def hop_share(self) -> float:
        """Time in hops in which nothing else happens."""
        return self.split[Kind.HOP]

    @property
    def load(self) -> float:
        """Requests in flight, as named, or as measured while there were any."""
        return float(self.concurrency or (self.in_flight or 0.0) / (1 - min(self.idle_share, MOST_IDLE)))

    @property
    def means_only(self) -> bool:
        """Whether it is of a published table."""
        return self.source is Source.TABLE

    @property
    def of_events(self) -> bool:
        """Whether single requests are known."""
        return self.source is Source.EVENTS

    @property
    def name(self) -> str:
        return self.run or (f"{self.concurrency} at a time" if self.concurrency else "the run")


@dataclass(frozen=True, slots=True)
class LengthCell:
    """The complete requests of one run whose input is longer than `low` and not longer than `high`: shares of
    their end-to-end time, as of a run. `work` by stage."""

    run: str
    load: float
    low: float
    high: float
    n: int
    e2e_mean_ms: float
    queue_share: float
    hop_share: float
    work: Mapping[str, float]
    residual_share: float


@dataclass(frozen=True, slots=True)
class LengthTable:
    """Shares by input length and load: a cell for each run and bin that has requests. `why_none`: why there
    is none."""

    unit: str
    cells: tuple[LengthCell, ...]
    why_none: str = ""


@dataclass(frozen=True, slots=True)
class StageAnalysis:
    """All runs with a complete request, by load; the run that the verdict is of; runs without any, what was
    lost, the guards, each with the run as its scope, how many requests events name, complete or not, how many
    pages of metrics were read, and shares by input length (None: nothing that could tell)."""

    runs: tuple[RunLedger, ...]
    chosen: RunLedger | None
    empty_runs: tuple[str, ...]
    lost: tuple[str, ...]
    files: tuple[Artifact, ...]
    guards: tuple[Checked, ...]
    requests: int = 0
    pages: int = 0
    lengths: LengthTable | None = None
