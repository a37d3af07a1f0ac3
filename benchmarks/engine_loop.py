"""A closed loop of clients inside the engine's process: no HTTP, so what is timed is the engine alone. The
device has a core to itself where there are several, as in a server.
"""

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
NS_PER_S, MS_PER_S = 1e9, 1e3
NOTHING_IS_SHED = 10_000


@dataclass(frozen=True, slots=True)
class Pass:
    """A load: seconds it took, each request's latency, and for how long the device ran kernels and copies.
    `rows`: of a decode step, `chunks`: of a launch of the vocoder, in the mean.
    """

    took_s: float
    latencies_s: Sequence[float]
    audio_s: float
    device_s: float
    rows: float
    chunks: float

    @property
    def done_per_s(self) -> float:
        return len(self.latencies_s) / self.took_s

    @property
    def busy(self) -> float:
        return self.device_s / self.took_s

    @property
    def device_ms_a_request(self) -> float:
        return self.device_s / len(self.latencies_s) * MS_PER_S


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of the engine at one moment."""

    audio_s: float
    device_s: float
    frames: float
    steps: float
    chunks: float
    launches: float


class EngineLoop:
    """One engine; `configure` between loads."""

    def __init__(self, **options: Any) -> None:
        self.metrics = Metrics()
        settings = resolve(options={"build_backlog": NOTHING_IS_SHED, **options})
        self.engine = Engine(settings, self.metrics, self._hear, make_pipeline)
        if isinstance(self.engine.device, EmulatedDevice):
            self.engine.device.claim_core()
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
        before, begun_s = self._counts(), time.perf_counter()
        for _ in range(clients):
            self._next()
        with self._changed:
            self._changed.wait_for(lambda: len(self._ended_s) == len(requests))
        took_s = time.perf_counter() - begun_s
        latencies = [self._ended_s[name] - started for name, started in self._started_s.items()]
        after = self._counts()
        return Pass(
            took_s,
            latencies,
            audio_s=after.audio_s - before.audio_s,
            device_s=after.device_s - before.device_s,
            rows=(after.frames - before.frames) / (after.steps - before.steps),
            chunks=(after.chunks - before.chunks) / (after.launches - before.launches),
        )

    def close(self) -> None:
        self.engine.close()
        self.metrics.close()

    def _counts(self) -> Counts:
        device, get = self.engine.device, self.metrics.get
        busy_ns = device.counters().busy_ns if isinstance(device, EmulatedDevice) else 0
        return Counts(
            audio_s=get("engine_audio_seconds_total"),
            device_s=busy_ns / NS_PER_S,
            frames=get("engine_frames_total"),
            steps=get("engine_steps_total", "ar"),
            chunks=sum(get("engine_vocoder_items_total", how) for how in ("batched", "single")),
            launches=get("engine_steps_total", "vocoder"),
        )

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
