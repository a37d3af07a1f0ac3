"""How late the client's own loop is, and what CPU it takes: the client judged by itself.

A tick is due every 10 ms. A loop that is held up for 50 ms misses five: each is as late as it was due, so a
stall weighs what it would have cost requests that came during it.

    {"kind": "start", mono_ns, wall_ns, cpu_ns, process, connections}   once, first
    {"kind": "pulse", mono_ns, cpu_ns, reads, late_ns: [...]}           about once a second
    {"kind": "end", mono_ns, wall_ns, cpu_ns, why, error}               once, last
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from layers.collectors.load.timer import Timer
from layers.evidence.record_log import RecordLog

PERIOD_NS = 10_000_000
TICKS_A_RECORD = 100


class Pulse:
    """Ticks from `start` to `end`, in one file."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path, reads: Callable[[], int]) -> None:
        self._log = RecordLog(path)
        self._reads = reads
        self._late_ns: list[int] = []
        self._timer = Timer(loop, self._tick)

    def start(self, about: dict[str, Any]) -> None:
        now_ns = time.monotonic_ns()
        clocks = {"mono_ns": now_ns, "wall_ns": time.time_ns(), "cpu_ns": time.process_time_ns()}
        self._log.append({"kind": "start", **clocks, **about})
        self._timer.every(now_ns + PERIOD_NS, PERIOD_NS)

    def end(self, why: str, error: str) -> None:
        self._timer.close()
        self._record()
        clocks = {"mono_ns": time.monotonic_ns(), "wall_ns": time.time_ns(), "cpu_ns": time.process_time_ns()}
        self._log.append({"kind": "end", **clocks, "why": why, "error": error})
        self._log.close()

    def _tick(self, due_ns: int, count: int) -> None:
        late_ns = time.monotonic_ns() - due_ns
        self._late_ns += (late_ns - missed * PERIOD_NS for missed in range(count))
        if len(self._late_ns) >= TICKS_A_RECORD:
            self._record()

    def _record(self) -> None:
        clocks = {"mono_ns": time.monotonic_ns(), "cpu_ns": time.process_time_ns()}
        self._log.append({"kind": "pulse", **clocks, "reads": self._reads(), "late_ns": self._late_ns})
        self._late_ns = []
