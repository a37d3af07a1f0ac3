"""The entries of the document of `perfkit layer1 --json`: every name in them, declared once.

`sections.py` and `sampled_sections.py` write these records, the reports read them back, and the test of the
contract takes its schema from them. What was not measured is absent in the document and None (or empty) here.
Of a device, CONTRACT lists the names that are promised; the others may change with a version.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import msgspec

from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.idle_model import IdleAnatomy, StreamWait
from layers.layer1_gpu_busy.model import (
    BatchRow,
    CopyRow,
    KernelRow,
    LaunchCoverage,
    LaunchStats,
    OperatorRow,
    Overlap,
    PhaseRow,
    ReplayCheck,
    Steps,
    StepTime,
    StreamBusy,
    Strip,
)
from layers.layer1_gpu_busy.thresholds import Word
from parsers.loss import Loss
from parsers.trace_model import CategoryCount, TraceMeta


@dataclass(frozen=True, slots=True)
class WindowEntry:
    """One window of one device, in µs, with its ratios."""

    window: str
    window_us: float
    device_op_ratio: float | None = None
    kernel_time_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One device by one method: an entry of `devices`. A trace gives windows and a verdict word; a sampled
    series gives what its sampler measures, and no windows. `entity`: how the sampler calls it.
    """

    method: str
    source: str
    events: int
    device: int | None = None
    entity: str = ""
    scope: str = ""
    word: str = ""
    directional: bool = False
    kernels: int = 0
    window_us: float = 0.0
    windows: tuple[WindowEntry, ...] = ()
    streams: tuple[StreamBusy, ...] = ()
    rank: int | None = None
    device_name: str = ""
    sum_of_durations_us: float | None = None
    device_op_ratio: float | None = None
    kernel_time_ratio: float | None = None
    gr_active_ratio: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    nvml_util_pct: float | None = None

    @property
    def headline(self) -> str:
        """Its word, with a question mark where it only hints."""
        return self.word + ("?" if self.directional else "")

    @property
    def ratio(self) -> float:
        """Its ratio of device-op time; 0 where it has none."""
        return self.device_op_ratio or 0.0

    @property
    def measured(self) -> bool:
        """Whether its ratio of device-op time means anything."""
        return self.word != Word.VOID and self.device_op_ratio is not None

    @property
    def sampled(self) -> bool:
        """Whether it comes from a sampled series."""
        return not self.windows


@dataclass(frozen=True, slots=True)
class Anatomy:
    """What was found inside one device's window: an entry of `anatomy`."""

    scope: str
    replays: ReplayCheck | None = None
    steps: Steps | None = None
    step_times: tuple[StepTime, ...] = ()
    idle: IdleAnatomy | None = None
    stream_waits: tuple[StreamWait, ...] = ()
    launches: LaunchStats | None = None
    kernels: tuple[KernelRow, ...] = ()
    copies: tuple[CopyRow, ...] = ()
    overlap: Overlap | None = None
    phases: tuple[PhaseRow, ...] = ()
    operators: tuple[OperatorRow, ...] = ()
    batches: tuple[BatchRow, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    strip: Strip | None = None
    ncu_command: str | None = None


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One file: an entry of `traces`."""

    path: str
    meta: TraceMeta
    sha256: str = ""
    size_bytes: int = 0
    text_bytes: int = 0
    busy_only: bool = False
    training: bool = False
    launch_coverage: LaunchCoverage | None = None
    inventory: tuple[CategoryCount, ...] = ()
    losses: tuple[Loss, ...] = ()
    nsys: dict[str, Any] | None = None

    @property
    def packed(self) -> bool:
        """Whether places in it are of its unpacked text."""
        return self.text_bytes != self.size_bytes


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One number about one card: an entry of `methods`. `kernel_time_share` is a trace's lower end."""

    method: str
    measures: str
    means: str
    source: str
    card: str
    n: int
    n_unit: str
    share: float
    question: str = ""
    instrument: str = ""
    scale_in_source: str = ""
    scope: str = ""
    kernel_time_share: float | None = None
    window_us: float | None = None


@dataclass(frozen=True, slots=True)
class MethodsCompared:
    """Two methods on one card: an entry of `comparisons`. `agree` is None where nothing can be said."""

    a: MethodEntry
    b: MethodEntry
    times: str
    agree: bool | None
    why: str


CONTRACT = (
    *("method", "source", "rank", "device", "events", "window_us", "kernel_time_ratio", "device_op_ratio"),
    *("sm_active_ratio", "tensor_active_ratio", "nvml_util_pct"),
)
"""Names of a device that scripts of others may read: to rename one takes another SCHEMA_VERSION."""
OF_ANALYSIS = tuple(field.name for field in fields(Anatomy) if field.name not in ("scope", "ncu_command"))
"""The parts of an anatomy that are records of the analysis of the device, under their own names."""


def entry_of(kind: type, **values: Any) -> dict[str, Any]:
    """An entry of this kind, JSON-ready, without what is None. TypeError for a name that is not declared."""
    kind(**values)
    present = {name: value for name, value in values.items() if value is not None}
    return {name: msgspec.to_builtins(value, str_keys=True) for name, value in present.items()}
