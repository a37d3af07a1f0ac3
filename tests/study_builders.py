"""The passes of a study, as they would be if each cell had the throughput that a test gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from layers.layer3_sweep.model import Accuracy, DeviceUse, Latency, Quantile, SweepPass, Timing
from layers.layer3_sweep.protocol import MIX, passes_of
from layers.layer3_sweep.studies import Study, plan_of_study
from tests.sweep_builders import sweep_pass

Cell = Mapping[str, str]
Rate = Callable[[Cell], float]


def level(_: Cell) -> float:
    return 20.0


def unified_is_slow(cell: Cell) -> float:
    return 14.0 if cell["policy"] == "unified" and cell[MIX] == "short-heavy" else 20.0


def e2e(median_ms: float, p95_ms: float) -> Latency:
    return Latency(100, median_ms, 1.0, (Quantile(0.5, median_ms), Quantile(0.95, p95_ms)))


def ran(study: Study, rate: Rate, spread: float = 0.01, repeats: int | None = None) -> list[SweepPass]:
    """Every pass of a study; throughputs lie `spread` around that of the cell, by turns."""
    made = []
    for key in passes_of(plan_of_study(study, repeats=repeats)):
        cell = study.cells[key.cell]
        rps = rate(cell) * (1 + spread * (1, -1, 0)[key.repeat % 3])
        ms = 1000 * study.concurrency / rps
        swept = sweep_pass(study.concurrency, repeat=key.repeat, settings=dict(cell), throughput_rps=rps)
        use = DeviceUse("emulated", "emulated", "device_op_ratio", 0.9, 100, None)
        right = Accuracy("exact-match", 1.0, 64, 0)
        made.append(replace(swept, timings={Timing.E2E: e2e(ms, 2 * ms)}, devices=(use,), accuracy=right))
    return made
