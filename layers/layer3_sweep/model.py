"""What Layer 3 passes on: passes (one load, one repeat), points (all repeats of a load), and the curve.

A pass that perfkit ran and one that was imported are the same record; what was not measured is None and is
never 0. Latency is told with its n; a quantile that n does not allow is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layers.collectors.load.plan import Load
from layers.collectors.server_adapters.metrics import BatchMeans
from layers.evidence.batch_law import BatchLaw
from layers.evidence.guard import Checked
from layers.evidence.measurement import Artifact


class WindowKind(StrEnum):
    """Which part of a pass its numbers are of."""

    STEADY = "steady"
    """in-flight at or above STEADY_SHARE of what was asked"""
    WHOLE = "whole"
    """first to last measured request, since no steady stretch is long enough"""
    REPORTED = "reported"
    """as another tool reported it"""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one pass on the monotonic clock. `length_s` is None where another tool does not tell.
    `generations`: requests ended in it over requests in flight; None for an open loop."""

    kind: WindowKind
    start_ns: int | None
    end_ns: int | None
    length_s: float | None
    generations: float | None


@dataclass(frozen=True, slots=True)
class Quantile:
    """One quantile in milliseconds with its order-statistic 95 % interval; none for imported values."""

    quantile: float
    value_ms: float
    low_ms: float | None = None
    high_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """A time of requests. `with_failures` are the quantiles with every failed request as infinite (nearest
    rank); a quantile that is infinite is left out of it. `n` is None where a tool did not report it."""

    n: int | None
    mean_ms: float | None
    sd_ms: float | None
    quantiles: tuple[Quantile, ...]
    with_failures: tuple[Quantile, ...] = ()
    definition: str = ""
    max_ms: float | None = None

    def quantile_ms(self, quantile: float) -> float | None:
        """One quantile; None where n does not allow it or it was not reported."""
        return next((q.value_ms for q in self.quantiles if q.quantile == quantile), None)


class Timing(StrEnum):
    """The times of a request that a pass tells, all from the intended start unless it says otherwise."""

    E2E = "e2e"
    TTFT = "ttft"
    """first output, of token endpoints"""
    FIRST_AUDIO = "first_audio"
    TPOT = "tpot"
    """(last event - first event) / (tokens - tokens of the first event), a value a request"""
    ITL = "itl"
    """gap between two events of one request, a value a gap"""
    SEND_LAG = "send_lag"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the requests of the window, by their last attempt. `errors` is what is neither ok nor
    shed; `by_outcome` the same in words of `Outcome`; `attempts` counts retries too. `untold` names the
    counts that a tool does not give: they are 0 in sums, and told as absent."""

    ok: int
    shed: int
    errors: int
    attempts: int | None
    by_outcome: Mapping[str, int]
    untold: frozenset[str] = frozenset()

    @property
    def told(self) -> bool:
        """Whether anything is known of them: some imported tables count nothing."""
        return bool(self.by_outcome)

    @property
    def asked(self) -> int:
        return self.ok + self.shed + self.errors


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """What the client cost, inside the window; the most strained process where there are several."""

    processes: int
    cpu_share: float
    send_lag_p99_ms: float
    loop_lag_p99_ms: float
    events_per_s: float
    floor_ms: float | None = None
    """loop lag of an idle client on this machine, from its calibration"""
    loop_lag_p90_ms: float | None = None
    real_time: bool = False
    """whether all load processes ran ahead of others on their machine"""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device over the window by one source. `metric` is a `parsers.series_model.Metric`; `artifact` is
    the sampler's own file where that is not the pass's."""

    device: str
    source: str
    metric: str
    mean: float
    n: int
    memory_peak_bytes: float | None
    median: float | None = None
    artifact: Artifact | None = None


@dataclass(frozen=True, slots=True)
class HostUse:
    """CPU of the server's processes over the window, in cores; `busiest_thread` where threads were read.
    `others_share`: of the machine's cores, kept busy by what is neither the server's nor perfkit's."""

    cores: float
    busiest_thread: float | None
    processes: int
    n: int
    others_share: float | None = None


@dataclass(frozen=True, slots=True)
class CardState:
    """What else was with one card over the window. `others`: in words, what processes of others did on it;
    None where they cannot be told from ours. `sm_clock_mhz` is the median; `slowed` the share of samples at
    which a reason held the clocks back (`fields.SLOWDOWNS`); each None where it was not sampled."""

    device: str
    others: tuple[str, ...] | None
    sm_clock_mhz: float | None
    slowed: Mapping[str, float] | None
    n: int


@dataclass(frozen=True, slots=True)
class ServerUse:
    """Means over the window of what the server says of itself."""

    running: float | None
    waiting: float | None
    kv_share: float | None
    preemptions: float | None
    prefix_hit_share: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right the answers are. `metric`: "wer", "cer", "exact-match", "audio-seconds-ratio" (over those of
    the least load); `items` were judged, `left_out` had no answer to judge."""

    metric: str
    value: float
    items: int
    left_out: int


@dataclass(frozen=True, slots=True)
class SweepPass:
    """One repeat at one load. `arm` is "" for the server under test and "control" for the other one.

    `settings` are those that a grid sets in this cell. `in_flight` is the mean over the window. `stage_ms`:
    mean stage times where the server gives them; `batches`: what each stage worked on at a time. `machine`:
    the one that the server runs on, where it is known.
    """

    load: Load
    repeat: int
    arm: str
    settings: Mapping[str, str]
    source: str
    window: Window
    counts: Counts
    throughput_rps: float
    in_flight: float | None
    timings: Mapping[Timing, Latency]
    output_tokens_per_s: float | None = None
    audio_s_per_s: float | None = None
    rtf: Latency | None = None
    underrun_share: float | None = None
    devices: tuple[DeviceUse, ...] = ()
    host: HostUse | None = None
    cards: tuple[CardState, ...] = ()
    server: ServerUse | None = None
    accuracy: Accuracy | None = None
    client: ClientHealth | None = None
    stage_ms: Mapping[str, float] | None = None
    batches: Mapping[str, BatchMeans] | None = None
    artifact: Artifact | None = None
    machine: str = ""

    @property
    def littles_ratio(self) -> float | None:
        """X · R / N: 1 where every slot is always full and every request counted (Little 1961)."""
        e2e = self.timings.get(Timing.E2E)
        if e2e is None or e2e.mean_ms is None or not self.load.concurrency:
            return None
        return self.throughput_rps * e2e.mean_ms / 1000 / self.load.concurrency


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """All passes of one load that stand, and those that guards took out. Means are over passes."""

    load: Load
    passes: tuple[SweepPass, ...]
    void: tuple[SweepPass, ...]
    throughput_rps: float | None
    throughput_sd: float | None

    @property
    def stands(self) -> bool:
        """Whether any pass of it is left to speak."""
        return bool(self.passes)


class CurveClass(StrEnum):
    """What kind of curve it is."""

    NOT_SATURATED = "not-saturated"
    PLATEAU_DEVICE = "plateau-device"
    PLATEAU_LIMIT = "plateau-limit"
    HOST_SIDE = "host-side"
    RETROGRADE = "retrograde"
    OVERLOADED = "overloaded"
    CLIENT_LIMITED = "client-limited"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A load that a definition picks out, and the numbers by which it does."""

    name: str
    concurrency: float
    because: str


@dataclass(frozen=True, slots=True)
class Usl:
    """X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)), each (value, low, high) at 95 % (Gunther,
    Universal Scalability Law).

    `fits`: whether it passed its lack-of-fit test; `peak` = sqrt((1 - alpha) / beta) where beta is clear of
    0.
    """

    gamma: tuple[float, float, float]
    alpha: tuple[float, float, float]
    beta: tuple[float, float, float]
    r2: float
    n: int
    fits: bool
    because: str
    peak: float | None


@dataclass(frozen=True, slots=True)
class Elasticity:
    """ln(X2 / X1) / ln(N2 / N1) from one load to a higher one: 1 is linear, 0 a plateau, below 0 retrograde.

    The interval is at 95 %, out of the spread of repeats pooled over the curve; None without repeats.
    """

    start: float
    end: float
    value: float
    low: float | None
    high: float | None


class Trend(StrEnum):
    """How the utilisation of the devices goes with load."""

    RISING = "rising"
    FLAT = "flat"
    FALLING = "falling"
    USELESS = "useless"
    """near its top from the lowest load on: it tells busy from busier by nothing"""


@dataclass(frozen=True, slots=True)
class Utilisation:
    """One metric of the devices over the loads: (load, mean over devices and passes) for each that has it,
    and how it goes with load. `share` is the last value as a share of full, where the metric has a full."""

    metric: str
    source: str
    values: tuple[tuple[float, float], ...]
    trend: Trend
    share: float | None
    because: str


@dataclass(frozen=True, slots=True)
class StageSlope:
    """How many more requests a stage holds for each more in flight: dQ / dN with Q = X · R of the stage
    (Little 1961). Past saturation it goes to 1 at the bottleneck and to 0 elsewhere (Berger, Bregman, Kogan
    1999)."""

    stage: str
    slope: float
    held_at_last: float
    waits: bool
    """whether its name says that it only waits"""


@dataclass(frozen=True, slots=True)
class StageLaw:
    """Time of a stage's batches by their size, over passes whose mean sizes differ. `measured_batch`: the
    mean size of the pass that got most items a second out of the stage, at load `measured_at` with these
    settings; `gain`: what the law promises of its best batch over that, as a share. `by_pass`: (load, mean
    size, mean ms, batches)."""

    stage: str
    law: BatchLaw
    passes: int
    batches: int
    measured_batch: float
    measured_at: float
    measured_settings: Mapping[str, str]
    gain: float
    by_pass: tuple[tuple[float, float, float, int], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One arm of a sweep (and one cell of a grid) in one word, with the points that stand out and what the
    word rests on. `usl_refused` says why there is no USL fit; `overloaded` are loads with more failures than
    the budget allows, which the word leaves out."""

    arm: str
    word: CurveClass
    because: str
    points: tuple[SweepPoint, ...]
    named: tuple[NamedPoint, ...]
    usl: Usl | None
    settings: Mapping[str, str] = field(default_factory=dict)
    usl_refused: str = ""
    elasticities: tuple[Elasticity, ...] = ()
    utilisation: tuple[Utilisation, ...] = ()
    stages: tuple[StageSlope, ...] = ()
    laws: tuple[StageLaw, ...] = ()
    overloaded: tuple[SweepPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepAnalysis:
    """A whole sweep: a curve for each arm and each cell of its grid, and what was lost on the way. `guards`
    are those on passes, points and curves, in that order, each with the scope that it is about."""

    curves: tuple[Curve, ...]
    not_run: tuple[Load, ...]
    lost: tuple[str, ...]
    regime: str
    guards: tuple[Checked, ...] = ()
