"""The input queue of a stage: bounded or not, in order of arrival or shortest first.

A queue belongs to the stage that takes from it: one thread takes, any thread puts. Bounded queues make the
stage before wait; only the queue in front of the running set has no bound. Whatever the order, items of one
request are taken in the order in which they were put, one at a time, since stages keep state for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.request import Flight

Payload = TypeVar("Payload")
Order = Literal["arrival", "shortest"]

LOOK_S = 0.05
"""Between two looks at whether a request that waits for room has ended meanwhile."""
PATIENCE_NS = 5 * 10**9
"""What has waited so long is overtaken no more by shorter items."""
NS = 1e-9


@dataclass(frozen=True, slots=True)
class Queued(Generic[Payload]):
    """Work for a stage. `cost` orders items where the policy looks at length (frames, steps)."""

    flight: Flight
    payload: Payload
    entered_ns: int
    cost: int


class StageQueue(Generic[Payload]):
    """`capacity` None: no bound. `stage` is the label of the waits in the metrics."""

    def __init__(
        self, stage: str, metrics: Metrics, capacity: int | None = None, order: Order = "arrival"
    ) -> None:
        self._stage = stage
        self._metrics = metrics
        self._capacity = capacity
        self._order = order
        self._items: list[Queued[Payload]] = []
        self._changed = threading.Condition()

    def put(self, item: Queued[Payload]) -> None:
        """Append; waits while the queue is full. Work for a request that has ended is dropped."""
        with self._changed:
            while self._is_full() and not item.flight.ended:
                self._changed.wait(LOOK_S)
            if not item.flight.ended:
                self._items.append(item)
                self._changed.notify_all()

    def take(self, limit: int, wait_s: float = 0.0, window_s: float = 0.0) -> list[Queued[Payload]]:
        """Up to `limit` items, `[]` when none came within `wait_s`. The first is held up to `window_s` after
        it came, for more to share its batch.
        """
        with self._changed:
            self._changed.wait_for(self._live, wait_s)
            batch = self._choose(limit)
            if batch and len(batch) < limit:
                self._hold(batch[0], window_s, lambda: len(self._choose(limit)) == limit)
                batch = self._choose(limit)
            taken = set(map(id, batch))
            self._items = [one for one in self._items if id(one) not in taken]
            self._changed.notify_all()
        self._observe(batch)
        return batch

    def wait(self, timeout_s: float) -> None:
        """Until there is something to take, or so long."""
        with self._changed:
            self._changed.wait_for(self._live, timeout_s)

    def oldest_ns(self) -> int | None:
        """When the item that has waited longest came; None when nothing waits."""
        with self._changed:
            return min((one.entered_ns for one in self._live()), default=None)

    def __len__(self) -> int:
        with self._changed:
            return len(self._live())

    def _is_full(self) -> bool:
        return self._capacity is not None and len(self._live()) >= self._capacity

    def _live(self) -> list[Queued[Payload]]:
        """What waits, without what nobody waits for any more."""
        self._items = [one for one in self._items if not one.flight.ended]
        return self._items

    def _choose(self, limit: int) -> list[Queued[Payload]]:
        """The next ones: of each request only what was put first."""
        heads: dict[Flight, Queued[Payload]] = {}
        for one in self._live():
            heads.setdefault(one.flight, one)
        items = list(heads.values())
        if self._order == "shortest":
            items.sort(key=_shortest_first(time.perf_counter_ns()))
        return items[:limit]

    def _hold(self, first: Queued[Payload], window_s: float, is_full: Callable[[], bool]) -> None:
        left_s = window_s - (time.perf_counter_ns() - first.entered_ns) * NS
        if left_s > 0:
            self._changed.wait_for(is_full, left_s)

    def _observe(self, batch: list[Queued[Payload]]) -> None:
        now_ns = time.perf_counter_ns()
        for one in batch:
            self._metrics.observe("engine_queue_wait_seconds", (now_ns - one.entered_ns) * NS, self._stage)


def _shortest_first(now_ns: int) -> Callable[[Queued[Payload]], tuple[bool, int]]:
    """Those out of patience first, oldest of them in front; then by cost. Equal ones keep their order."""

    def key(item: Queued[Payload]) -> tuple[bool, int]:
        is_patient = now_ns - item.entered_ns < PATIENCE_NS
        return is_patient, item.cost if is_patient else item.entered_ns

    return key
