"""What `perfkit layer1` recorded, read back from its JSON document into the records of the layer.

The names are those of `layers/layer1_gpu_busy/sections.py`; what was not measured is absent there and None
(or empty) here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from layers.evidence.store_rows import Run
from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.compare import Comparison
from layers.layer1_gpu_busy.compare_files import NotCompared
from layers.layer1_gpu_busy.idle_model import IdleAnatomy
from layers.layer1_gpu_busy.model import (
    BatchRow,
    CopyRow,
    KernelRow,
    LaunchStats,
    OperatorRow,
    Overlap,
    PhaseRow,
    Steps,
    StepTime,
    StreamBusy,
    Strip,
)
from layers.layer1_gpu_busy.ranks import RankTable
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers.errors import StoreError
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
    series gives the last three ratios and no windows.
    """

    method: str
    source: str
    events: int
    device: int | None = None
    scope: str = ""
    word: str = ""
    directional: bool = False
    kernels: int = 0
    window_us: float = 0.0
    windows: tuple[WindowEntry, ...] = ()
    streams: tuple[StreamBusy, ...] = ()
    rank: int | None = None
    device_name: str = ""
    device_op_ratio: float | None = None
    kernel_time_ratio: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
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
    steps: Steps | None = None
    step_times: tuple[StepTime, ...] = ()
    idle: IdleAnatomy | None = None
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
    size_bytes: int = 0
    text_bytes: int = 0
    busy_only: bool = False
    training: bool = False
    inventory: tuple[CategoryCount, ...] = ()
    losses: tuple[Loss, ...] = ()

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


@dataclass(frozen=True, slots=True)
class Layer1Document:
    """The sections of one run. `roofline` is the answer to a question and stays as it was recorded."""

    devices: tuple[DeviceEntry, ...]
    thresholds: Thresholds
    anatomy: tuple[Anatomy, ...] = ()
    traces: tuple[TraceEntry, ...] = ()
    ranks: tuple[RankTable, ...] = ()
    comparison: Comparison | None = None
    not_compared: NotCompared | None = None
    methods: tuple[MethodEntry, ...] = ()
    comparisons: tuple[MethodsCompared, ...] = ()
    roofline: dict[str, Any] | None = None

    @property
    def traced(self) -> tuple[DeviceEntry, ...]:
        """The devices of traces."""
        return tuple(device for device in self.devices if not device.sampled)

    @property
    def sampled(self) -> tuple[DeviceEntry, ...]:
        """The devices of sampled series."""
        return tuple(device for device in self.devices if device.sampled)

    @property
    def measured(self) -> tuple[DeviceEntry, ...]:
        """The devices of traces whose ratio means something."""
        return tuple(device for device in self.traced if device.measured)


def read_layer1(run: Run) -> Layer1Document:
    """The document of one run of layer1; StoreError where another version of perfkit wrote it otherwise."""
    try:
        return msgspec.convert(run.document, Layer1Document, str_keys=True)
    except msgspec.ValidationError as error:
        what = f"run {run.id}: its document is not what this perfkit records ({error})"
        again = f"measure again: {run.call.shown_command}"
        raise StoreError(f"{what}: {again}") from error
