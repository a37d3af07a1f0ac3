"""The fields of nvidia-smi's tables that perfkit uses, and what each measures: one table a form.

The name in a header is not always the one that was asked for (aliases), so each spelling stands here. All
other columns are passed over.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.sampled_cells import MIB
from parsers.series_model import Metric


class Field(NamedTuple):
    """What a column measures, and what a number without a unit is multiplied with."""

    metric: Metric
    scale: float = 1


UTIL = Field(Metric.NVML_UTIL_PCT)
MEMORY_USED = Field(Metric.MEMORY_USED_BYTES, MIB)
PROCESS_MEMORY = Field(Metric.PROCESS_MEMORY_BYTES, MIB)
POWER = Field(Metric.POWER_W)
SM_CLOCK = Field(Metric.SM_CLOCK_MHZ)
MEMORY_CLOCK = Field(Metric.MEMORY_CLOCK_MHZ)
TEMPERATURE = Field(Metric.TEMPERATURE_C)

CSV_FIELDS = {
    "utilization.gpu": UTIL,
    "utilization.memory": Field(Metric.MEMORY_UTIL_PCT),
    "memory.used": MEMORY_USED,
    "power.draw": POWER,
    "power.draw.average": POWER,
    "power.draw.instant": POWER,
    "clocks.current.sm": SM_CLOCK,
    "clocks.sm": SM_CLOCK,
    "clocks.current.memory": MEMORY_CLOCK,
    "clocks.mem": MEMORY_CLOCK,
    "temperature.gpu": TEMPERATURE,
    "used_gpu_memory": PROCESS_MEMORY,
    "used_memory": PROCESS_MEMORY,
}
"""Columns of --query-gpu and --query-compute-apps, without the unit: nvidia-smi --help-query-gpu, drivers
590 to 610. `used_memory` is asked for and `used_gpu_memory` comes back."""

SCRIPT_FIELDS = {
    "utilization_%": UTIL,
    "gpu_util": UTIL,
    "memory_%": Field(Metric.MEMORY_UTIL_PCT),
    "used_mb": MEMORY_USED,
    "temperature_c": TEMPERATURE,
}
"""Headers that scripts around nvidia-smi print, in its units: the GPU monitor of a public `vllm bench`
sweep."""

TIME_COLUMNS = ("timestamp", "time")
INDEX_COLUMNS = ("index", "gpu")
ID_COLUMNS = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
"""How a row names its GPU where it gives no index, the most telling first."""
MODEL_COLUMNS = ("name", "gpu_name")
PID_COLUMN = "pid"
MIG_COLUMN = "mig.mode.current"
MIG_ENABLED = "enabled"

DMON_FIELDS = {
    "sm": UTIL,
    "mem": Field(Metric.MEMORY_UTIL_PCT),
    "pwr": POWER,
    "gtemp": TEMPERATURE,
    "temp": TEMPERATURE,
    "mclk": MEMORY_CLOCK,
    "pclk": SM_CLOCK,
    "fb": MEMORY_USED,
}
"""Columns of nvidia-smi dmon (its manual page). `sm` is utilization.gpu under a misleading name: the time
that any kernel ran, not the share of multiprocessors that did."""

PMON_FIELDS = {"sm": Field(Metric.PROCESS_UTIL_PCT), "fb": PROCESS_MEMORY}
"""Columns of nvidia-smi pmon, one row per process."""
