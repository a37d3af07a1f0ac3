"""A closed loop of clients inside the engine's process: no HTTP, so what is timed is the engine alone."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sample_engine.config.resolve import resolve
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.engine import Engine
from sample_engine.observe.metrics import Metrics
from sample_engine.pipelines import make_pipeline
from sample_engine.scheduling.request import Ending, Piece, Request

NAP_S = 1e-3
NS_PER_S = 1e9
NOTHING_IS_SHED = 10_000


@dataclass(frozen=True, slots=True)
class Pass:
    """A load: seconds it took, each request's latency, and the share of the time in which the device ran."""

    took_s: float
    latencies_s: Sequence[float]
    audio_s: float
    busy: float

    @property
    def done_per_s(self) -> float:
        return len(self.latencies_s) / self.took_s


class EngineLoop:
    """One engine; `configure` between loads."""

    def __init__(self, **options: Any) -> None:
        self.metrics = Metrics()
        settings = resolve(options={"build_backlog": NOTHING_IS_SHED, **options})
        self.engine = Engine(settings, self.metrics, self._hear, make_pipeline)
        self._changed = threading.Condition()
        self._started_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}
        self._left: list[Request] = []

    def configure(self, changes: Mapping[str, object]) -> None:
        while not self.engine.is_idle:
            time.sleep(NAP_S)
        self.engine.configure(changes)

    def run(self, requests: Sequence[Request], clients: int) -> Pass:
        """Every client asks for its next request when its last one has ended."""
        self._started_s.clear()
        self._ended_s.clear()
        self._left = list(reversed(requests))
        audio_s, busy_ns = self.metrics.get("engine_audio_seconds_total"), self._busy_ns()
        begun_s = time.perf_counter()
        for _ in range(clients):
            self._next()
        with self._changed:
            self._changed.wait_for(lambda: len(self._ended_s) == len(requests))
        took_s = time.perf_counter() - begun_s
        latencies = [self._ended_s[name] - started for name, started in self._started_s.items()]
        audio_s = self.metrics.get("engine_audio_seconds_total") - audio_s
        return Pass(took_s, latencies, audio_s, (self._busy_ns() - busy_ns) / took_s / NS_PER_S)

    def close(self) -> None:
        self.engine.close()
        self.metrics.close()

    def _busy_ns(self) -> int:
        device = self.engine.device
        return device.counters().busy_ns if isinstance(device, EmulatedDevice) else 0

    def _next(self) -> None:
        with self._changed:
            if not self._left:
                return
            request = self._left.pop()
            self._started_s[request.request_id] = time.perf_counter()
        self.engine.submit(request)

    def _hear(self, message: Piece | Ending) -> None:
        if isinstance(message, Piece):
            return
        now_s = time.perf_counter()
        if message.end != "done":
            sys.exit(f"a request ended as {message.end}: {message.reason}")
        self._next()
        with self._changed:
            self._ended_s[message.request_id] = now_s
            self._changed.notify_all()


def speech(name: str, words: int) -> Request:
    """A request of so many words, another text for each name."""
    return Request(name, "speech", text=" ".join(f"{name}w{index}" for index in range(words)))
