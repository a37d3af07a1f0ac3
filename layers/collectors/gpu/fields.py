"""Every field that a sampler records, and the metric of `parsers.series_model` that it is a value of.

Two fields may measure one metric (the driver's latest utilisation, and the buffer it keeps of them): they
become two series. Values are recorded in the unit that the metric's name ends with.
"""

from __future__ import annotations

from parsers.dcgm_fields import FIELDS as DCGM_FIELDS
from parsers.series_model import Metric

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
    **{field.short_name: field.metric for field in DCGM_FIELDS},
}
"""A field that is not named here is `Metric.OTHER`."""
