"""What n counts, and how much of it is enough: the one table of the whole program, as data.

Each kind of measurement is one class: the facts that a finding of that kind rests on, its row of the table in
words, and where those facts stand in it. The words are what reports print; the numbers in them come from the
constants, each with its source. `layers.evidence.strength` turns a standing into strong, medium or weak.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from layers.evidence import wording
from layers.evidence.statistics import CONFIDENCE, minimum_n_for_quantile

METHODOLOGY = "SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798)"

STRONG_REPEATS = 3
"""Converging repeats, captures or windows behind a strong finding: METHODOLOGY, evidence grades."""

SERIES_MIN_SAMPLES = 20
"""Fewer samples are biased to the ramp, not merely noisy: METHODOLOGY, layer 1."""

TRACE_MIN_STEPS = 5
"""perfkit's choice: the steps beside an admission or a log line differ by far more than steady ones."""

TRACE_MIN_OPERATIONS = 200
"""perfkit's choice, for work without named steps: a few forward passes of even a small model."""

STACKS_MIN_TICKS = 200
"""perfkit's choice: a leaf share of a half is then known to 7 points either way (Wilson, 95 %)."""

STACKS_MIN_CAPTURES = 3
"""Independent windows: METHODOLOGY, layer 2."""

SWEEP_MIN_REPEATS = 2
"""perfkit's choice: one pass has no spread at all."""

LEDGER_MIN_REQUESTS = 20
"""As for samples: the first requests of a run meet an emptier server than later ones."""
OUTPUTS_MIN_ITEMS = 20
"""None of 20 still allows 14 % to differ (one-sided, 95 %); as for samples of a series."""
AB_MIN_PAIRS = 3
"""2 pairs have one degree of freedom: their t interval reaches 13 standard errors either way."""

AB_STRONG_PAIRS = 4
"""A paired t interval finds an effect of twice the spread in 47 % of cases with 3 pairs, in 75 % with 4."""


class Standing(StrEnum):
    """Where facts stand in their row."""

    NOTHING = "nothing was measured"
    DIRECTIONAL = "below the row's least n"
    ENOUGH = "enough to conclude"
    STRONG = "as the row's strong column asks"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table in words."""

    measurement: str
    counts: str
    directional_below: str
    strong_needs: str


class Facts(Protocol):
    """What a finding rests on: `counted` says it in words, `standing` places it in its `row`."""

    row: ClassVar[Row]

    @property
    def counted(self) -> str: ...

    @property
    def standing(self) -> Standing: ...


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """NVML, DCGM, nvidia-smi, GPU metrics: samples inside the load window, over all `windows`."""

    row: ClassVar[Row] = Row(
        "sampled series (NVML, DCGM, nvidia-smi, GPU metrics)",
        "samples inside the load window",
        f"fewer than {SERIES_MIN_SAMPLES} samples",
        f"{SERIES_MIN_SAMPLES} samples and {STRONG_REPEATS} windows",
    )
    samples: int
    windows: int = 1

    @property
    def counted(self) -> str:
        return f"{wording.counted(self.samples, 'sample')} in {wording.counted(self.windows, 'window')}"

    @property
    def standing(self) -> Standing:
        if self.samples == 0:
            return Standing.NOTHING
        if self.samples < SERIES_MIN_SAMPLES:
            return Standing.DIRECTIONAL
        return Standing.STRONG if self.windows >= STRONG_REPEATS else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class Trace:
    """Busy ratio and phases of a trace, which is exact for its window: does the window stand for the service?

    `steps` and `operations` are those of the window, or of the poorest one of several captures.
    `supported`: an independent method (a sampler, another profiler) says the same.
    """

    row: ClassVar[Row] = Row(
        "trace busy ratio, phases",
        "steps in the window, and device operations",
        f"fewer than {TRACE_MIN_STEPS} steps and fewer than {TRACE_MIN_OPERATIONS} operations",
        f"{STRONG_REPEATS} captures, or one capture that an independent method supports",
    )
    steps: int
    operations: int
    captures: int = 1
    supported: bool = False

    @property
    def counted(self) -> str:
        steps, operations = wording.counted(self.steps, "step"), wording.counted(self.operations, "operation")
        return f"{wording.counted(self.captures, 'capture')}, {steps}, {operations}"

    @property
    def standing(self) -> Standing:
        if self.operations == 0:
            return Standing.NOTHING
        if self.steps < TRACE_MIN_STEPS and self.operations < TRACE_MIN_OPERATIONS:
            return Standing.DIRECTIONAL
        return Standing.STRONG if self.captures >= STRONG_REPEATS or self.supported else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stack sampling: ticks of the scoped thread over all captures. `agree`: within their intervals."""

    row: ClassVar[Row] = Row(
        "stacks",
        "ticks of the scoped thread, over captures",
        f"fewer than {STACKS_MIN_TICKS} ticks or fewer than {STACKS_MIN_CAPTURES} captures",
        f"{STRONG_REPEATS} captures that agree within their interval",
    )
    ticks: int
    captures: int
    agree: bool

    @property
    def counted(self) -> str:
        return f"{wording.counted(self.ticks, 'tick')} in {wording.counted(self.captures, 'capture')}"

    @property
    def standing(self) -> Standing:
        if self.ticks == 0:
            return Standing.NOTHING
        if self.ticks < STACKS_MIN_TICKS or self.captures < STACKS_MIN_CAPTURES:
            return Standing.DIRECTIONAL
        return Standing.STRONG if self.captures >= STRONG_REPEATS and self.agree else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One concurrency of a sweep: its repeats, and the requests inside them."""

    row: ClassVar[Row] = Row(
        "sweep point",
        "repeats; requests inside them",
        f"fewer than {SWEEP_MIN_REPEATS} repeats",
        f"{STRONG_REPEATS} repeats",
    )
    repeats: int
    requests: int

    @property
    def counted(self) -> str:
        return f"{wording.counted(self.requests, 'request')} in {wording.counted(self.repeats, 'repeat')}"

    @property
    def standing(self) -> Standing:
        if self.requests == 0:
            return Standing.NOTHING
        if self.repeats < SWEEP_MIN_REPEATS:
            return Standing.DIRECTIONAL
        return Standing.STRONG if self.repeats >= STRONG_REPEATS else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class StageLedger:
    """Where the time of requests goes: complete requests of the run (None: not told), and `runs` at its load
    that say the same."""

    row: ClassVar[Row] = Row(
        "stage ledger",
        "complete requests of a run; runs at the same load",
        f"fewer than {LEDGER_MIN_REQUESTS} complete requests",
        f"{STRONG_REPEATS} runs that agree",
    )

    requests: int | None
    runs: int = 1

    @property
    def counted(self) -> str:
        of = "requests not told" if self.requests is None else wording.counted(self.requests, "request")
        return f"{of}, {wording.counted(self.runs, 'run')}"

    @property
    def standing(self) -> Standing:
        if self.requests is None:
            return Standing.ENOUGH
        if self.requests == 0:
            return Standing.NOTHING
        if self.requests < LEDGER_MIN_REQUESTS:
            return Standing.DIRECTIONAL
        return Standing.STRONG if self.runs >= STRONG_REPEATS else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class LatencyPercentile:
    """A quantile of latency (0.5, 0.99, ...): below the n that gives it an interval nothing is printed."""

    row: ClassVar[Row] = Row(
        "latency percentile",
        "requests",
        "not printed below the n that gives it an order-statistic 95 % interval ("
        + ", ".join(f"{minimum_n_for_quantile(q):,} for p{100 * q:g}" for q in (0.5, 0.9, 0.95, 0.99, 0.999))
        + ")",
        "as printed, with its interval",
    )
    quantile: float
    requests: int

    @property
    def counted(self) -> str:
        return f"p{100 * self.quantile:g} of {wording.counted(self.requests, 'request')}"

    @property
    def standing(self) -> Standing:
        enough = self.requests >= minimum_n_for_quantile(self.quantile)
        return Standing.STRONG if enough else Standing.NOTHING


@dataclass(frozen=True, slots=True)
class Comparison:
    """An A/B: `pairs` of server starts (a start is the unit; runs within it are averaged).

    `interval_clear`: the effect's interval is clear of 0, and of the floor that A/A runs of the protocol set.
    """

    row: ClassVar[Row] = Row(
        "A/B",
        "pairs of server starts, one start an arm in each",
        f"fewer than {AB_MIN_PAIRS} pairs",
        f"{AB_STRONG_PAIRS} pairs, interval clear of 0 and of the A/A floor",
    )
    pairs: int
    interval_clear: bool

    @property
    def counted(self) -> str:
        return wording.counted(self.pairs, "pair")

    @property
    def standing(self) -> Standing:
        if self.pairs == 0:
            return Standing.NOTHING
        if self.pairs < AB_MIN_PAIRS:
            return Standing.DIRECTIONAL
        strong = self.pairs >= AB_STRONG_PAIRS and self.interval_clear
        return Standing.STRONG if strong else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs compared byte by byte: `samples` of so many `items`, of which a second run of the reference
    answered `repeats` with the same bytes; `caught`: every fault planted into a copy of them was found;
    `differ`: one that differs is enough to say so."""

    row: ClassVar[Row] = Row(
        "outputs, byte by byte",
        "items, and the samples of them in all cells",
        f"fewer than {OUTPUTS_MIN_ITEMS} items",
        "a second run of the reference that repeats every byte, and every planted fault found",
    )
    items: int
    samples: int
    repeats: int
    caught: bool
    differ: bool = False

    @property
    def counted(self) -> str:
        of = wording.counted(self.items, "item")
        return (
            f"{wording.counted(self.samples, 'sample')} of {of}, {self.repeats:,} repeated by the reference"
        )

    @property
    def standing(self) -> Standing:
        if self.samples == 0:
            return Standing.NOTHING
        if self.items < OUTPUTS_MIN_ITEMS and not self.differ:
            return Standing.DIRECTIONAL
        strong = self.caught and self.repeats >= self.samples
        return Standing.STRONG if strong else Standing.ENOUGH


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Right and wrong answers on the same items in both arms; `p_value` is McNemar's exact one.

    A claim of `difference` needs a small p. A claim of none needs the difference that would have been found:
    "no loss" is never mere lack of significance.
    """

    row: ClassVar[Row] = Row(
        "accuracy",
        "items, the same in both arms",
        "by McNemar's own p; a claim of no difference, without the detectable one",
        "as printed, with the detectable difference",
    )
    items: int
    p_value: float
    difference: bool
    detectable_pct: float | None

    @property
    def counted(self) -> str:
        return f"{wording.counted(self.items, 'item')}, p = {self.p_value:.3g}"

    @property
    def standing(self) -> Standing:
        if self.items == 0:
            return Standing.NOTHING
        if self.difference and self.p_value > 1 - CONFIDENCE:
            return Standing.DIRECTIONAL
        if self.detectable_pct is None:
            return Standing.ENOUGH if self.difference else Standing.DIRECTIONAL
        return Standing.STRONG


TABLE: tuple[Row, ...] = tuple(
    kind.row
    for kind in (
        *(SampledSeries, Trace, StageLedger, Stacks, SweepPoint),
        *(LatencyPercentile, Comparison, Outputs, Accuracy),
    )
)
"""Every row, in the order of the five layers."""
