"""Steps of a stage as captured graphs, one for each exact shape, with the eager way always there.

A step is a function that launches; it may only read and write buffers that stay where they are. Captures run
the largest shape first (the pool that graphs share then never grows under an earlier graph), each after a
warm-up that is run for real and whose traces in the state are then wiped. They stop at a memory cap. Whatever
fails, a capture or a replay, ends graphs for good in this stage: logged, counted, eager from then on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sample_engine.device import Device, Graph, Stream
from sample_engine.errors import DeviceError, DeviceLost
from sample_engine.observe.metrics import Metrics

Key = TypeVar("Key", bound=Hashable)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Coverage(Generic[Key]):
    """How often each shape was a replay, and how often not."""

    replays: Counter[Key] = field(default_factory=Counter)
    eager: Counter[Key] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Of all steps, those that were replays."""
        replays = self.replays.total()
        return replays / max(1, replays + self.eager.total())


class Graphs(Generic[Key]):
    """`step(key)` launches a step; `reset()` wipes what a warm-up left in the state."""

    def __init__(
        self,
        device: Device,
        stream: Stream,
        step: Callable[[Key], None],
        reset: Callable[[], None],
        metrics: Metrics,
        stage: str,
    ) -> None:
        self.enabled = True
        self.failure = ""
        self.coverage: Coverage[Key] = Coverage()
        self.reserved_bytes = 0
        self._device = device
        self._stream = stream
        self._step = step
        self._reset = reset
        self._metrics = metrics
        self._stage = stage
        self._graphs: dict[Key, Graph] = {}

    @property
    def captured(self) -> list[Key]:
        return list(self._graphs)

    def capture(self, keys: Sequence[Key], budget_bytes: int) -> None:
        """Capture these shapes, given largest first, while nothing else runs on the device."""
        for index, key in enumerate(keys):
            taken = self.reserved_bytes
            if taken >= budget_bytes:
                self._count("skipped", len(keys) - index)
                log.warning("%s: no graph for %s, %d bytes are taken", self._stage, keys[index:], taken)
                return
            if self.failure or not self._captured(key):
                return

    def trial(self, key: Key) -> int:
        """Bytes that a graph of this shape reserves, found by capturing one and dropping it. A small shape,
        for what it reserved may be kept and used by the captures that follow.
        """
        before = self.reserved_bytes
        if self._captured(key):
            self._graphs.pop(key).close()
        taken = self.reserved_bytes - before
        self._note_reserved(before)
        return taken

    def run(self, key: Key) -> None:
        """A step: replayed where there is a graph."""
        graph = self._graphs.get(key) if self.enabled else None
        if graph is None or not self._replayed(graph):
            self._step(key)
            self.coverage.eager[key] += 1
            self._count("eager")
        else:
            self.coverage.replays[key] += 1
            self._count("replays")

    def close(self) -> None:
        """Drop all graphs."""
        for graph in self._graphs.values():
            graph.close()
        self._graphs.clear()
        self._note_reserved(0)

    def _captured(self, key: Key) -> bool:
        try:
            self._step(key)
            self._reset()
            before = self._device.memory().reserved_bytes
            with self._stream.capture() as graph:
                self._step(key)
        except DeviceLost:
            raise
        except DeviceError as error:
            self._give_up(f"capture of {key}: {error}")
            return False
        finally:
            self._reset()
        self._graphs[key] = graph
        self._count("captures")
        self._note_reserved(self.reserved_bytes + self._device.memory().reserved_bytes - before)
        return True

    def _note_reserved(self, size_bytes: int) -> None:
        self.reserved_bytes = size_bytes
        self._metrics.set("engine_graph_bytes", size_bytes, self._stage)

    def _replayed(self, graph: Graph) -> bool:
        try:
            graph.replay()
        except DeviceLost:
            raise
        except DeviceError as error:
            self._give_up(f"replay: {error}")
            return False
        return True

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self._count("failures")
        log.warning("%s runs without graphs: %s", self._stage, reason)
        self.close()

    def _count(self, what: str, times: int = 1) -> None:
        self._metrics.add(f"engine_graph_{what}_total", times, self._stage)
