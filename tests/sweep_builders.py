"""Passes and records for tests of Layer 3, with everything in order unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from layers.collectors.load.plan import Load
from layers.collectors.load.records import Outcome, Phase, RequestRecord
from layers.layer3_sweep.model import (
    ClientHealth,
    Counts,
    DeviceUse,
    Latency,
    Quantile,
    SweepPass,
    Timing,
    Window,
    WindowKind,
)

NS_PER_MS = 1_000_000


def latency(median_ms: float, n: int = 100) -> Latency:
    return Latency(n, median_ms, 0.0, (Quantile(0.5, median_ms),))


def client(**other: Any) -> ClientHealth:
    made: dict[str, Any] = {
        "processes": 1,
        "cpu_share": 0.1,
        "send_lag_p99_ms": 0.2,
        "loop_lag_p99_ms": 0.5,
        "events_per_s": 640.0,
    }
    return ClientHealth(**made | other)


def sweep_pass(concurrency: int = 8, **other: Any) -> SweepPass:
    """Eight at a time, 100 requests of 100 ms: 80 a second."""
    made: dict[str, Any] = {
        "load": Load(concurrency),
        "repeat": 1,
        "arm": "",
        "settings": {},
        "source": "perfkit",
        "window": Window(WindowKind.STEADY, 0, 10**10, 10.0, 100.0),
        "counts": Counts(800, 0, 0, 800, {"ok": 800}),
        "throughput_rps": 80.0,
        "in_flight": float(concurrency),
        "timings": {Timing.E2E: latency(100.0), Timing.TTFT: latency(20.0), Timing.ITL: latency(10.0)},
        "client": client(),
    }
    return SweepPass(**made | other)


def record(sequence: int, sent_ms: float, end_ms: float, **other: Any) -> RequestRecord:
    """One served request, sent when it was meant to be."""
    sent_ns = int(sent_ms * NS_PER_MS)
    made: dict[str, Any] = {
        "sequence": sequence,
        "attempt": 1,
        "item": f"i{sequence}",
        "phase": Phase.MEASURED,
        "process": 0,
        "outcome": Outcome.OK,
        "error": "",
        "status": 200,
        "intended_ns": sent_ns,
        "sent_ns": sent_ns,
        "connected_ns": None,
        "first_byte_ns": sent_ns,
        "end_ns": int(end_ms * NS_PER_MS),
        "request_bytes": 100,
        "response_bytes": 100,
        "reads": 1,
    }
    return RequestRecord(**made | other)


def curve_passes(
    rates: Mapping[int, float],
    repeats: int = 1,
    *,
    drift: float = 0.0,
    spread: float = 0.0,
    devices: Callable[[int], tuple[DeviceUse, ...]] = lambda _: (),
    **other: Any,
) -> list[SweepPass]:
    """Passes of a closed loop with these throughputs; latency as Little's law has it.

    Each repeat is `drift` faster than the one before; `spread` lies above and below, in turn from repeat to
    repeat and from load to load: no repeat is faster as a whole.
    """
    made = []
    for repeat in range(repeats):
        for place, (n, base) in enumerate(rates.items()):
            rate = base * (1 + drift) ** repeat * (1 + spread * (1, -1)[(repeat + place) % 2])
            timings = {Timing.E2E: latency(1000 * n / rate, 1000)}
            own: dict[str, Any] = {"timings": timings, "devices": devices(n), **other}
            made.append(sweep_pass(n, repeat=repeat + 1, throughput_rps=rate, **own))
    return made
