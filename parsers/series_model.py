"""Sampled series: what NVML, nvidia-smi, DCGM and GPU-metric samplers record, as numpy columns.

One `Series` is one field of one entity (a GPU, a MIG instance, a process on a GPU). Values are in the unit
that the metric's name ends with; a sample that the source had no value for is left out and counted in
`missing`, so that it is never read as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from parsers.loss import Loss
from parsers.trace_model import I64

F64 = npt.NDArray[np.float64]

NO_DEVICE = -1
"""The source names the device in another way than by its index, or not at all."""
NO_PROCESS = -1
"""The series is a device's, not a process's."""


class Metric(StrEnum):
    """What a series measures. They answer different questions and are never averaged with each other."""

    NVML_UTIL_PCT = "nvml_util_pct"
    MEMORY_UTIL_PCT = "memory_util_pct"
    MEMORY_USED_BYTES = "memory_used_bytes"
    GR_ACTIVE_RATIO = "gr_active_ratio"
    SM_ACTIVE_RATIO = "sm_active_ratio"
    SM_OCCUPANCY_RATIO = "sm_occupancy_ratio"
    TENSOR_ACTIVE_RATIO = "tensor_active_ratio"
    DRAM_ACTIVE_RATIO = "dram_active_ratio"
    DEVICE_OP_RATIO = "device_op_ratio"
    POWER_W = "power_w"
    SM_CLOCK_MHZ = "sm_clock_mhz"
    MEMORY_CLOCK_MHZ = "memory_clock_mhz"
    TEMPERATURE_C = "temperature_c"
    PROCESS_UTIL_PCT = "process_util_pct"
    PROCESS_MEMORY_BYTES = "process_memory_bytes"
    OTHER = "other"


class FailureKind(StrEnum):
    """Why a sampler gave no value, as far as its own words tell."""

    PERMISSION = "not permitted"
    PROFILING_LOCK = "the profiling counters are held by something else"
    NO_HOST_ENGINE = "no DCGM host engine"
    NOT_SUPPORTED = "not supported here"
    DRIVER = "no working driver"
    GPU_LOST = "the GPU is lost"
    NO_DATA = "no data"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a sampler said of its own failure: the kind, and its words (one line, shortened)."""

    kind: FailureKind
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one field of one entity, in the order of the source; arrays of shape (n,).

    `at_ns` is wall-clock time (unix ns) or None where the source stamps nothing; `line` is the line of the
    file that a sample stands on (from 1), None where there is no file. `field` is the source's own name of
    the metric, `entity` its name of the device ("gpu 0", "gpu-i 3"), `device` the GPU's index there or
    NO_DEVICE. `missing` counts samples without a value, `out_of_range` those left out because the metric
    cannot be so.
    """

    metric: Metric
    field: str
    entity: str
    device: int
    at_ns: I64 | None
    values: F64
    missing: int
    line: I64 | None = None
    out_of_range: int = 0
    pid: int = NO_PROCESS


@dataclass(frozen=True, slots=True)
class PlainSample:
    """One sample of a metric that is none of a GPU's: a server's own gauge or counter, with its labels."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    at_ns: int | None


@dataclass(frozen=True, slots=True)
class SampledFile:
    """All series of one file.

    `notes` are the source's own words that a reader should see, `failures` what it said of its own failure.
    `local_time`: the timestamps name no zone and are read as UTC. `mig_devices` are the GPUs that the file
    says are partitioned. `samples` are a server's own metrics.
    """

    path: str
    sha256: str
    size_bytes: int
    source: str
    series: tuple[Series, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    local_time: bool = False
    mig_devices: tuple[int, ...] = ()
    samples: tuple[PlainSample, ...] = ()
