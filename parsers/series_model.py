"""Sampled series: what NVML, nvidia-smi, DCGM and GPU-metric samplers record, as numpy columns.

One `Series` is one metric of one entity (a GPU, a MIG instance). Values keep the scale of `unit`; a sample that
the source had no value for is left out and counted in `missing`, so that it is never read as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from parsers.chrome_model import I64
from parsers.loss import Loss

F64 = npt.NDArray[np.float64]


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
    POWER_W = "power_w"
    SM_CLOCK_MHZ = "sm_clock_mhz"
    MEMORY_CLOCK_MHZ = "memory_clock_mhz"
    TEMPERATURE_C = "temperature_c"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one metric of one entity, in time order; arrays of shape (n,).

    `at_ns` is wall-clock time (unix ns) or None where the source stamps nothing. `field` is the source's own name
    of the metric, `entity` its name of the device ("gpu 0", "gpu 0 instance 3"), `device` the GPU's index there.
    """

    metric: Metric
    field: str
    entity: str
    device: int
    at_ns: I64 | None
    values: F64
    missing: int


@dataclass(frozen=True, slots=True)
class SampledFile:
    """All series of one file. `notes` are the source's own words that a reader should see (error texts, versions)."""

    path: str
    sha256: str
    size_bytes: int
    source: str
    series: tuple[Series, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]
