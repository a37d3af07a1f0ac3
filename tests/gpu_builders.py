"""GPUs, series and recordings for tests, built without a driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from layers.collectors.gpu.inventory_model import Gpu, GpuProcess
from layers.collectors.gpu.readings import Lost, Recording, SamplerCost, Start
from layers.evidence.measurement import Artifact
from parsers.series_model import Metric, SampledFile, Series

GIB = 1 << 30
PERIOD_NS = 100_000_000
ARTIFACT = Artifact("/samples.log", "ab" * 32, 1000)


def gpu(index: int = 0, processes: Iterable[GpuProcess] | None = (), **facts: object) -> Gpu:
    """An idle H200; `facts` replace what it says."""
    made = Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="H200",
        capability="9.0",
        memory_total_bytes=141 * GIB,
        memory_used_bytes=0,
        power_limit_w=700.0,
        max_sm_clock_mhz=1980,
        max_memory_clock_mhz=3201,
        persistence=True,
        mig=False,
        ecc_uncorrected=0,
        slowdowns=(),
        processes=None if processes is None else tuple(processes),
    )
    return replace(made, **facts)  # type: ignore[arg-type]


def series(device: int, metric: Metric, values: Sequence[float]) -> Series:
    return Series(
        metric=metric,
        field=metric.value,
        entity=f"gpu {device}",
        device=device,
        at_ns=np.arange(len(values), dtype=np.int64) * PERIOD_NS,
        values=np.array(values, np.float64),
        missing=0,
    )


def recording(*all_series: Series, lost: Iterable[int] = ()) -> Recording:
    """One sampling by NVML that holds these series."""
    file = SampledFile(ARTIFACT.path, ARTIFACT.sha256, ARTIFACT.size_bytes, "nvml", all_series, (), ())
    return Recording(
        start=Start("nvml", PERIOD_NS, 0, (), (), (), {}, {}),
        file=file,
        artifact=ARTIFACT,
        cost=SamplerCost("nvml", PERIOD_NS, 10**9, 0.02, ()),
        lost=tuple(Lost(f"gpu {device}", device, 0, "GPU is lost") for device in lost),
        gaps={},
    )


def sampled(device: int, util: Sequence[float], memory: Sequence[float] = (0,)) -> tuple[Series, Series]:
    """Utilisation in percent and memory in bytes of one card."""
    return (
        series(device, Metric.NVML_UTIL_PCT, util),
        series(device, Metric.MEMORY_USED_BYTES, memory),
    )
