"""Runs as other tools report them, and samplers' logs beside them, in order unless a test says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from layers.evidence.guard import Checked, apply_guards
from layers.evidence.measurement import Artifact
from layers.layer3_sweep.guards_import import IMPORT_PASS_GUARDS, ImportedPass
from layers.layer3_sweep.imported import load_of, pass_of
from layers.layer3_sweep.imported_devices import Logs
from parsers.load_results import LoadResults, ReportedLatency, ReportedRun
from parsers.series_model import Metric, SampledFile, Series

NS_PER_S = 10**9
START_S = 1_777_554_831
"""2026-04-30 13:13:51 on a clock that is read as UTC."""


def latency(mean_ms: float, n: int | None = 400) -> ReportedLatency:
    return ReportedLatency(n, mean_ms, 0.0, {0.5: mean_ms, 0.99: 2 * mean_ms})


def reported(concurrency: int | None = 8, **other: Any) -> ReportedRun:
    """400 requests of 100 ms each in 5 s, 8 at a time; nothing failed."""
    made: dict[str, Any] = {
        "tool": "a tool",
        "version": "1.0",
        "label": "m",
        "concurrency": concurrency,
        "rate_per_s": None,
        "asked": 400,
        "completed": 400,
        "failed": 0,
        "duration_s": 5.0,
        "request_rate": 80.0,
        "output_token_rate": None,
        "in_flight": None,
        "latencies": {"e2e": latency(100.0), "ttft": latency(20.0)},
        "definitions": {"e2e": "all of it"},
    }
    return ReportedRun(**made | other)


def results(*runs: ReportedRun, path: str = "results.json") -> LoadResults:
    return LoadResults(path, "0" * 64, 100, runs, ())


def fired(run: ReportedRun, tokens_at_first: float | None = None) -> list[Checked]:
    """The guards on one run that fired."""
    load = load_of(run)
    assert load is not None
    swept = pass_of(run, load, 1, {}, Artifact("results.json", "0" * 64, 100), Logs())
    checked = apply_guards(IMPORT_PASS_GUARDS, ImportedPass(run, swept, tokens_at_first))
    return [one for one in checked if one.fired]


def log(first_s: float, utils: list[float], *, every_s: float = 10.0, local: bool = True) -> SampledFile:
    """One GPU, sampled every so often from a moment on (unix time)."""
    at_ns = (first_s + every_s * np.arange(len(utils))) * NS_PER_S
    memory = np.full(len(utils), 70.0 * 2**30)

    def series(metric: Metric, values: Any) -> Series:
        return Series(metric, str(metric), "gpu 0", 0, at_ns.astype(np.int64), np.asarray(values, float), 0)

    made = (series(Metric.NVML_UTIL_PCT, utils), series(Metric.MEMORY_USED_BYTES, memory))
    return SampledFile("gpu.csv", "1" * 64, 50, "nvidia-smi", made, (), (), local_time=local)
