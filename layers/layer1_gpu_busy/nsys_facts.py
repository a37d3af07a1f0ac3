"""What Layer 1 learns from an nsys export beyond what any trace tells: plain records, small whatever its
size.

`nsys_analysis.py` fills them; the guards on nsys and the document read them. Times are ns on the export's
clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.layer1_gpu_busy.reading_coverage import Coverage
from parsers.nsys_model import NsysCapture, NsysDevice
from parsers.series_model import Metric


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process that called CUDA or ran something: its launch calls, and its operations on any device."""

    pid: int
    name: str
    launches: int
    operations: int


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device. `replays` are graph replays recorded as a whole; `ratio_without_replays` is the device-op
    ratio with them taken as idle, a lower bound, since gaps between their nodes count as busy.
    `overhead_idle_ns` is the idle time during which a thread that launches work for this device was working
    for the profiler.
    """

    device: int
    replays: int
    ratio_without_replays: float | None
    overhead_idle_ns: int


@dataclass(frozen=True, slots=True)
class MetricMean:
    """The time-weighted mean of one sampled metric of one GPU over the device window (of the recording, where
    `device` is None: the export does not tell which device that GPU is). n counts samples inside; `known` is
    of the readings of the whole recording, and of the time of the window.
    """

    metric: Metric
    field: str
    gpu: int
    device: int | None
    mean: float
    n: int
    known: Coverage


@dataclass(frozen=True, slots=True)
class MetricCount:
    """What one GPU's samples of one metric came to: the usable ones with their plain mean (None: none is),
    and what was wrong with the others."""

    metric: Metric
    gpu: int
    device: int | None
    usable: int
    missing: int
    out_of_range: int
    mean: float | None


@dataclass(frozen=True, slots=True)
class OsCallRow:
    """Calls of one name into the C library by threads that launch device work, within the window of all
    devices.

    `waits`: the call is one in which a thread waits for others. `per_s` and `share` are over that window; the
    share may pass 1 where several threads launch.
    """

    name: str
    waits: bool
    calls: int
    per_s: float
    total_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class NsysFacts:
    """One export. `cut`: it holds a part of what was recorded. `metrics` have samples in their window, of
    `metric_counts` in the whole recording and `metric_rows` rows of any metric. `os_window_ns` is the time
    that `os_calls` were counted over, None where nothing was counted.
    """

    capture: NsysCapture
    devices: tuple[NsysDevice, ...]
    processes: tuple[ProcessRow, ...]
    device_facts: tuple[DeviceFacts, ...]
    metrics: tuple[MetricMean, ...]
    metric_counts: tuple[MetricCount, ...]
    metric_rows: int
    os_calls: tuple[OsCallRow, ...]
    os_window_ns: int | None
    cut: bool
    events_ns: int

    def of_device(self, device: int) -> DeviceFacts | None:
        """What is known of one device."""
        return next((facts for facts in self.device_facts if facts.device == device), None)

    def metrics_of(self, device: int) -> dict[Metric, MetricMean]:
        """The sampled metrics that are known to be of one device, those left out of which too little is
        known."""
        sampled = self.sampled_of(device)
        return {metric: mean for metric, mean in sampled.items() if not mean.known.too_little}

    def sampled_of(self, device: int) -> dict[Metric, MetricMean]:
        """The same with those that are left out."""
        return {mean.metric: mean for mean in self.metrics if mean.device == device}

    @property
    def mapped(self) -> bool:
        """Whether the export tells which physical GPU each process's devices are."""
        return all(device.gpu is not None for device in self.devices)
