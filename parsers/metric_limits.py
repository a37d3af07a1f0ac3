"""What each sampled metric can be: one table for everything that reads samples, from files or from a driver.

A value beyond its limits is no measurement: a counter that wrapped, a field on another scale, an answer of a
driver in trouble. It is left out and counted, never averaged.
"""

from __future__ import annotations

import math

from parsers.series_model import Metric

RATIO_TOLERANCE = 1.01
"""Counters are divided over a period that is not exactly theirs: a full one may read a little above 1."""
LIMITS = {
    Metric.NVML_UTIL_PCT: (0.0, 100.0),
    Metric.MEMORY_UTIL_PCT: (0.0, 100.0),
    Metric.PROCESS_UTIL_PCT: (0.0, 100.0),
    Metric.MEMORY_USED_BYTES: (0.0, 2.0**50),
    Metric.PROCESS_MEMORY_BYTES: (0.0, 2.0**50),
    Metric.GR_ACTIVE_RATIO: (0.0, RATIO_TOLERANCE),
    Metric.SM_ACTIVE_RATIO: (0.0, RATIO_TOLERANCE),
    Metric.SM_OCCUPANCY_RATIO: (0.0, RATIO_TOLERANCE),
    Metric.TENSOR_ACTIVE_RATIO: (0.0, RATIO_TOLERANCE),
    Metric.DRAM_ACTIVE_RATIO: (0.0, RATIO_TOLERANCE),
    Metric.POWER_W: (0.0, 1e5),
    Metric.SM_CLOCK_MHZ: (0.0, 1e5),
    Metric.MEMORY_CLOCK_MHZ: (0.0, 1e5),
    Metric.TEMPERATURE_C: (-100.0, 200.0),
}
"""What a metric can be, by its definition (shares) or far beyond any card (the rest)."""


def limits_of(metric: Metric) -> tuple[float, float]:
    """Lowest and highest value, both possible; infinite for a metric that is not known."""
    return LIMITS.get(metric, (-math.inf, math.inf))
