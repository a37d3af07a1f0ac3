"""DCGM's fields that perfkit uses, by number, by the short name that dmon prints, and by the exporter's
names.

Profiling fields (1001 and up) are shares 0..1; 203 and 204 are percent. DCGM 4.6 renamed the macros, among
them 203 to ..._UTIL_RATIO, which still runs to 100: the scale is known by the field, never by its name or
value.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsers.sampled_cells import MIB
from parsers.series_model import Metric


@dataclass(frozen=True, slots=True)
class DcgmField:
    """One field: values times `scale` are in the unit of the metric's name."""

    number: int
    short_name: str
    exporter_names: tuple[str, ...]
    metric: Metric
    scale: float = 1


FIELDS = (
    DcgmField(100, "SMCLK", ("DCGM_FI_DEV_SM_CLOCK",), Metric.SM_CLOCK_MHZ),
    DcgmField(101, "MMCLK", ("DCGM_FI_DEV_MEM_CLOCK",), Metric.MEMORY_CLOCK_MHZ),
    DcgmField(150, "TMPTR", ("DCGM_FI_DEV_GPU_TEMP",), Metric.TEMPERATURE_C),
    DcgmField(155, "POWER", ("DCGM_FI_DEV_POWER_USAGE",), Metric.POWER_W),
    DcgmField(203, "GPUTL", ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"), Metric.NVML_UTIL_PCT),
    DcgmField(204, "MCUTL", ("DCGM_FI_DEV_MEM_COPY_UTIL",), Metric.MEMORY_UTIL_PCT),
    DcgmField(252, "FBUSD", ("DCGM_FI_DEV_FB_USED",), Metric.MEMORY_USED_BYTES, MIB),
    DcgmField(
        1001,
        "GRACT",
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
        Metric.GR_ACTIVE_RATIO,
    ),
    DcgmField(
        1002, "SMACT", ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"), Metric.SM_ACTIVE_RATIO
    ),
    DcgmField(
        1003,
        "SMOCC",
        ("DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"),
        Metric.SM_OCCUPANCY_RATIO,
    ),
    DcgmField(
        1004,
        "TENSO",
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
        Metric.TENSOR_ACTIVE_RATIO,
    ),
    DcgmField(
        1005, "DRAMA", ("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"), Metric.DRAM_ACTIVE_RATIO
    ),
)
"""Source: dcgm_fields.h and dcgm_fields.cpp of NVIDIA/DCGM, 2.x to 4.6; the exporter's counters list."""

BY_SHORT_NAME = {field.short_name: field for field in FIELDS}
BY_EXPORTER_NAME = {name: field for field in FIELDS for name in field.exporter_names}

BLANKS = ((2**31 - 16, 2**31 - 1), (2**47, 2**48), (2**63 - 16, 2**63))
"""Numbers that say "no value" (DCGM_INT32_BLANK, DCGM_FP64_BLANK, DCGM_INT64_BLANK and the 15 after each: not
found, not supported, not permitted ...). No field above reaches them."""


def is_blank(value: float) -> bool:
    """Whether DCGM means "no value" by this number."""
    return any(low <= value <= high for low, high in BLANKS)
