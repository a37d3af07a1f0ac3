"""Every field that a sampler records, and the metric of `parsers.series_model` that it is a value of.

Two fields may measure one metric (the driver's latest utilisation, and the buffer it keeps of them): they
become two series. Values are recorded in the unit that the metric's name ends with.
"""

from __future__ import annotations

from parsers.dcgm_fields import FIELDS as DCGM_FIELDS
from parsers.series_model import NO_PROCESS, Metric

PROCESSES = "processes"
PROCESS_LISTED = "process.listed"
PROCESS_MEMORY = "process.memory"
PROCESS_SM = "process.sm"
"""How many processes are on a card, and of each of them: 1 while it is, its memory, its SM utilisation."""
PROCESS_OURS = "process.ours"
"""1 while a process of this machine belongs to those that were named as ours."""
CPU_BUSY, CPU_OURS, CPU_CORES = "cpu.busy", "cpu.ours", "cpu.cores"
"""Cores that were busy, those that our processes kept busy, and how many there are."""
CPU_SERVICE = "cpu.service"
"""Cores that the service's processes kept busy: ours without perfkit's."""
CPU_WAITING = "cpu.waiting"
"""The share of the time in which some task waited for a core (PSI, "some")."""
CLOCK_REASONS = "clocks.event_reasons"
"""Why a card runs slower than it could: NVML's bits (`SLOWDOWNS` names those that count)."""
SLOWDOWNS = {
    "power cap": 0x4,
    "hardware slowdown": 0x8,
    "thermal slowdown": 0x20,
    "hardware thermal slowdown": 0x40,
    "power brake": 0x80,
}
"""Bits of NVML's clocks event reasons (nvml.h, nvmlClocksEventReason*) that slow a card down."""
OF_PROCESS = "#"

DEVICE_BUSY = "device.busy"
"""The share of the time in which a device that runs one operation at a time ran one."""

METRIC_OF: dict[str, Metric] = {
    "utilization.gpu": Metric.NVML_UTIL_PCT,
    "utilization.gpu buffer": Metric.NVML_UTIL_PCT,
    "utilization.memory": Metric.MEMORY_UTIL_PCT,
    "memory.used": Metric.MEMORY_USED_BYTES,
    "power.draw": Metric.POWER_W,
    "clocks.sm": Metric.SM_CLOCK_MHZ,
    "clocks.mem": Metric.MEMORY_CLOCK_MHZ,
    "temperature.gpu": Metric.TEMPERATURE_C,
    "GPM graphics_util": Metric.GR_ACTIVE_RATIO,
    "GPM sm_util": Metric.SM_ACTIVE_RATIO,
    "GPM sm_occupancy": Metric.SM_OCCUPANCY_RATIO,
    "GPM any_tensor_util": Metric.TENSOR_ACTIVE_RATIO,
    "GPM dram_bw_util": Metric.DRAM_ACTIVE_RATIO,
    DEVICE_BUSY: Metric.DEVICE_OP_RATIO,
    PROCESS_MEMORY: Metric.PROCESS_MEMORY_BYTES,
    PROCESS_SM: Metric.PROCESS_UTIL_PCT,
    **{field.short_name: field.metric for field in DCGM_FIELDS},
}
"""A field that is not named here is `Metric.OTHER`."""


def of_process(field: str, pid: int) -> str:
    """The name under which a process's own value is recorded."""
    return f"{field}{OF_PROCESS}{pid}"


def split_process(name: str) -> tuple[str, int]:
    """Field and process of a recorded name; NO_PROCESS where it is the entity's own."""
    field, mark, pid = name.partition(OF_PROCESS)
    return field, int(pid) if mark else NO_PROCESS
