"""What is asked of one GPU or MIG instance through NVML: plain fields, GPM, and the driver's own buffer.

Plain fields are calls that do not depend on each other. GPM (Hopper and newer) compares two snapshots of
counters, the one before and the one now, so its value covers the time between two calls. The buffer holds
what the driver sampled by itself since the last call, with its own timestamps, at a higher rate than anyone
should ask at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layers.collectors.gpu.nvml_library import Call, Nvml
from layers.collectors.gpu.source import Entity, Values

NS_PER_S = 1_000_000_000

OVERLAP = 8
"""Calls under way at once: enough for calls of 340 ms (the slowest reported) at a period of 50 ms."""
GPM_PERIOD_NS = 100_000_000
"""Two GPM snapshots must lie at least 100 ms apart (note in nvml.h)."""
BUFFER_PERIOD_NS = NS_PER_S // 2
"""The driver's buffer holds seconds; asking twice a second loses nothing and costs little."""
CLOCKS_AGREE_NS = 60 * NS_PER_S
"""A timestamp this close to a clock was taken from it. perfkit's choice: the buffer spans seconds."""

GPM_FIELDS = {
    "GPM graphics_util": "NVML_GPM_METRIC_GRAPHICS_UTIL",
    "GPM sm_util": "NVML_GPM_METRIC_SM_UTIL",
    "GPM sm_occupancy": "NVML_GPM_METRIC_SM_OCCUPANCY",
    "GPM any_tensor_util": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "GPM dram_bw_util": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}
"""Field, and the constant of pynvml; values come in percent and are recorded as ratios."""
PERCENT = 0.01

BUFFER_FIELD = "utilization.gpu buffer"

TYPED_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of a sample's value by NVML's type number (nvmlValueType_t)."""


@dataclass(slots=True)
class FieldsProbe:
    """Calls whose answers stand for themselves; one without support is asked once and then left out."""

    name: str
    entity: Entity
    nvml: Nvml
    calls: list[Call]
    min_period_ns: int = 0
    overlap: int = OVERLAP

    def read(self) -> Sequence[Values]:
        values: dict[str, float] = {}
        missing: dict[str, str] = {}
        for call in list(self.calls):
            try:
                values.update(zip(call.fields, map(float, call.ask()), strict=True))
            except self.nvml.api.NVMLError as error:
                missing.update(dict.fromkeys(call.fields, self.nvml.why_missing(error)))
                self._drop_unsupported(call, error)
        return [Values(values, missing)] if values or missing else []

    def _drop_unsupported(self, call: Call, error: Any) -> None:
        if error.value == self.nvml.api.NVML_ERROR_NOT_SUPPORTED:
            self.calls = [other for other in self.calls if other is not call]


class GpmProbe:
    """SM, tensor and memory activity between two calls; `instance` is the GPU instance's id under MIG."""

    name = "gpm"
    min_period_ns = GPM_PERIOD_NS
    overlap = 1

    def __init__(self, entity: Entity, nvml: Nvml, device: Any, instance: int | None = None) -> None:
        """Raises NVMLError where this GPU has no GPM, whatever the support query said of it."""
        self.entity, self._nvml = entity, nvml
        self._device, self._instance = device, instance
        self._before, self._now = nvml("nvmlGpmSampleAlloc"), nvml("nvmlGpmSampleAlloc")
        self._taken = False
        self._snapshot(self._now)

    def read(self) -> Sequence[Values]:
        """Nothing the first time: the snapshot of the constructor is older than the load."""
        try:
            self._before, self._now = self._now, self._before
            self._snapshot(self._now)
            first, self._taken = not self._taken, True
            return [] if first else [self._compare()]
        except self._nvml.api.NVMLError as error:
            return [Values(missing=dict.fromkeys(GPM_FIELDS, self._nvml.why_missing(error)))]

    def _snapshot(self, into: Any) -> None:
        if self._instance is None:
            self._nvml("nvmlGpmSampleGet", self._device, into)
        else:
            self._nvml("nvmlGpmMigSampleGet", self._device, self._instance, into)

    def _compare(self) -> Values:
        api = self._nvml.api
        wanted = api.c_nvmlGpmMetricsGet_t()
        wanted.version = api.NVML_GPM_METRICS_GET_VERSION
        wanted.numMetrics = len(GPM_FIELDS)
        wanted.sample1, wanted.sample2 = self._before, self._now
        for slot, constant in enumerate(GPM_FIELDS.values()):
            wanted.metrics[slot].metricId = getattr(api, constant)
        self._nvml("nvmlGpmMetricsGet", wanted)
        return self._read_out(wanted)

    def _read_out(self, got: Any) -> Values:
        """Each metric has a return code of its own."""
        values: dict[str, float] = {}
        missing: dict[str, str] = {}
        for field, metric in zip(GPM_FIELDS, got.metrics, strict=False):
            if metric.nvmlReturn == self._nvml.api.NVML_SUCCESS:
                values[field] = PERCENT * metric.value
            else:
                missing[field] = str(self._nvml.api.NVMLError(metric.nvmlReturn))
        return Values(values, missing)


@dataclass(slots=True)
class BufferProbe:
    """The utilisation that the driver sampled by itself; an idle GPU may keep no samples at all."""

    entity: Entity
    nvml: Nvml
    device: Any
    name: str = "buffer"
    min_period_ns: int = BUFFER_PERIOD_NS
    overlap: int = 1
    last_us: int = 0
    supported: bool = True

    def read(self) -> Sequence[Values]:
        if not self.supported:
            return []
        api = self.nvml.api
        try:
            kind, samples = self.nvml(
                "nvmlDeviceGetSamples", self.device, api.NVML_GPU_UTILIZATION_SAMPLES, self.last_us
            )
        except api.NVMLError as error:
            if error.value == api.NVML_ERROR_NOT_FOUND:  # a dry buffer, and no failure
                return []
            self.supported = error.value != api.NVML_ERROR_NOT_SUPPORTED
            return [Values(missing={BUFFER_FIELD: self.nvml.why_missing(error)})]
        new = [sample for sample in samples if sample.timeStamp > self.last_us]
        self.last_us = max((sample.timeStamp for sample in new), default=self.last_us)
        return [self._values(sample, TYPED_FIELDS[kind]) for sample in new]

    def _values(self, sample: Any, member: str) -> Values:
        value = float(getattr(sample.sampleValue, member))
        wall_ns = wall_clock(1000 * sample.timeStamp)
        if wall_ns is None:
            return Values(missing={BUFFER_FIELD: "its timestamps follow no clock of this machine"})
        return Values({BUFFER_FIELD: value}, wall_ns=wall_ns)


def wall_clock(stamp_ns: int) -> int | None:
    """A driver's timestamp as wall-clock time: drivers use the wall clock, or that since boot (GB10)."""
    wall_ns = time.time_ns()
    for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME):
        age_ns = time.clock_gettime_ns(clock) - stamp_ns
        if abs(age_ns) < CLOCKS_AGREE_NS:
            return wall_ns - age_ns
    return None
