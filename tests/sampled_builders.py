"""Small sampled logs built in memory, for tests of what is computed from samples rather than of how logs
are read.

    log = log_of(util([97.0] * 30), series(Metric.SM_ACTIVE_RATIO, [0.1] * 30))

A sample a second from START_S (unix time) on, unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from layers.evidence.guard import Checked, apply_guards
from layers.layer1_gpu_busy.guards_sampled import SAMPLED_GUARDS
from layers.layer1_gpu_busy.sampled import analyse_samples
from layers.layer1_gpu_busy.sampled_cards import known_shares, processes_on
from layers.layer1_gpu_busy.sampled_checks import SampledFacts
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.loss import Loss
from parsers.series_model import NO_PROCESS, Failure, FailureKind, Metric, SampledFile, Series

START_S = 1_751_410_836
FIELDS = {
    Metric.NVML_UTIL_PCT: "utilization.gpu",
    Metric.GR_ACTIVE_RATIO: "GRACT",
    Metric.SM_ACTIVE_RATIO: "SMACT",
    Metric.TENSOR_ACTIVE_RATIO: "TENSO",
    Metric.POWER_W: "power.draw",
    Metric.SM_CLOCK_MHZ: "clocks.sm",
    Metric.MEMORY_USED_BYTES: "memory.used",
}


def series(
    metric: Metric,
    values: Sequence[float],
    *,
    gpu: int = 0,
    entity: str | None = None,
    at_s: Iterable[float] | None = None,
    timed: bool = True,
    missing: int = 0,
    out_of_range: int = 0,
    pid: int = NO_PROCESS,
    field: str | None = None,
) -> Series:
    """One series; `at_s` are seconds after START_S."""
    seconds = np.array(list(at_s) if at_s is not None else range(len(values)), np.float64)
    return Series(
        metric=metric,
        field=field or FIELDS.get(metric, str(metric)),
        entity=entity or f"gpu {gpu}",
        device=gpu,
        at_ns=((seconds + START_S) * 1e9).round().astype(np.int64) if timed else None,
        values=np.array(values, np.float64),
        missing=missing,
        line=np.arange(2, 2 + len(values), dtype=np.int64),
        out_of_range=out_of_range,
        pid=pid,
    )


def util(values: Sequence[float], *, gpu: int = 0, timed: bool = True) -> Series:
    """NVML utilisation in percent."""
    return series(Metric.NVML_UTIL_PCT, values, gpu=gpu, timed=timed)


def log_of(
    *all_series: Series,
    source: str = "nvidia-smi",
    path: str = "gpu.csv",
    failures: Sequence[FailureKind] = (),
    losses: Sequence[Loss] = (),
    mig_devices: Sequence[int] = (),
    local_time: bool = False,
    utc_offset_ns: int = 0,
) -> SampledAnalysis:
    """The analysis of a log that holds exactly these."""
    file = sampled_file(
        *all_series,
        source=source,
        path=path,
        failures=failures,
        losses=losses,
        mig_devices=mig_devices,
        local_time=local_time,
    )
    return analyse_samples(file, utc_offset_ns)


def sampled_file(
    *all_series: Series,
    source: str = "nvidia-smi",
    path: str = "gpu.csv",
    failures: Sequence[FailureKind] = (),
    losses: Sequence[Loss] = (),
    mig_devices: Sequence[int] = (),
    local_time: bool = False,
) -> SampledFile:
    """A log that holds exactly these, as a parser gives it."""
    return SampledFile(
        path=path,
        sha256=f"{abs(hash(path)):064x}"[:64],
        size_bytes=1,
        source=source,
        series=all_series,
        losses=tuple(losses),
        notes=(),
        failures=tuple(Failure(kind, f"it said: {kind}") for kind in failures),
        local_time=local_time,
        mig_devices=tuple(mig_devices),
    )


def checks(
    log: SampledAnalysis, *others: SampledAnalysis, number: int = 0, thresholds: Thresholds | None = None
) -> dict[str, Checked]:
    """The guards that apply to one entity of a log (to the log itself, where it has none), by code."""
    entity = log.entities[number] if log.entities else None
    files = [log, *others]
    facts = SampledFacts(
        file=log,
        entity=entity,
        shares=known_shares(entity, log, files) if entity else {},
        processes=processes_on(entity.device, files) if entity else 0,
        thresholds=thresholds or Thresholds(),
    )
    return {checked.code: checked for checked in apply_guards(SAMPLED_GUARDS, facts)}
