"""What Layer 1 finds in sampled series: plain records, one per entity (a GPU or MIG instance) of one file.

A sampled series is judged over its *active* stretch, from the first to the last sample in which anything ran,
as a trace is judged from its first to its last operation; the whole log stands beside it. A log without
timestamps has its line numbers for an axis, and no lengths of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from parsers.loss import Loss
from parsers.series_model import Failure, Metric, Series

BUSY_METRICS = (
    Metric.NVML_UTIL_PCT,
    Metric.GR_ACTIVE_RATIO,
    Metric.SM_ACTIVE_RATIO,
    Metric.DEVICE_OP_RATIO,
)
"""Those that say whether anything ran, in the order of preference where one must do."""

PERCENT = frozenset({Metric.NVML_UTIL_PCT, Metric.MEMORY_UTIL_PCT})
"""Metrics on the scale 0..100; the other shares run to 1."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of samples, both ends included: unix ns where the log has times, else line numbers."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MetricStats:
    """One metric over one span, in its own unit. `missing` and `out_of_range` are those of the whole log."""

    metric: Metric
    field: str
    n: int
    missing: int
    out_of_range: int
    mean: float
    p10: float
    p90: float
    minimum: float
    maximum: float
    zero_share: float

    @property
    def mean_share(self) -> float:
        """The mean as a share 0..1, for metrics that are shares."""
        return self.mean / 100 if self.metric in PERCENT else self.mean


Stats = Mapping[Metric, MetricStats]


@dataclass(frozen=True, slots=True)
class EntitySamples:
    """One GPU or MIG instance of one file. `series` has one per metric: that with the most samples.

    `whole` and `active` are None where there is no sample at all, or none in which anything ran. `cadence_s`
    is the median step, `gap_share` the time in steps longer than HOLE_PERIODS of it; both None without times.
    `moments`: different times of the active stretch, None without times.
    `ramp_share`: samples of the active stretch before it first came near its upper level. `steps_back` counts
    times that lie before the one above them. `false_readings`: samples that say a kernel ran while no memory
    was in use.
    """

    entity: str
    device: int
    series: Mapping[Metric, Series]
    timed: bool
    whole: Span | None
    active: Span | None
    whole_stats: Stats
    active_stats: Stats
    cadence_s: float | None
    longest_gap_s: float | None
    gap_share: float | None
    moments: int | None
    ramp_share: float | None
    steps_back: int
    false_readings: int

    @property
    def seconds(self) -> float | None:
        """Length of the active stretch; None without times."""
        return (self.active.end - self.active.start) / 1e9 if self.active and self.timed else None


@dataclass(frozen=True, slots=True)
class SampledAnalysis:
    """One file. `method` is what --json calls it (nvidia-smi, dcgm); `source` says which of its outputs.

    `processes`: how many processes ran on each device, where the file lists them (pmon, compute-apps).
    """

    artifact: Artifact
    method: str
    source: str
    entities: tuple[EntitySamples, ...]
    processes: Mapping[int, int]
    mig_devices: tuple[int, ...]
    local_time: bool
    failures: tuple[Failure, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]
