"""The interface of a stage's input queue, and what lies in it.

A queue belongs to the stage that takes from it: one thread takes, any thread puts. Bounded queues make the
stage before wait; only the queue in front of the running set has no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sample_engine.scheduling.request import Flight

Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class Queued(Generic[Payload]):
    """Work for a stage. `cost` orders and packs items in policies that look at length (frames, positions)."""

    flight: Flight
    payload: Payload
    entered_ns: int
    cost: int


class StageQueue(Protocol[Payload]):
    """First in, first out among items of the same kind."""

    def put(self, item: Queued[Payload]) -> None:
        """Append; waits while a bounded queue is full, unless the flight is cancelled meanwhile."""

    def take(
        self, limit: int, wait_s: float, same: Callable[[Payload], Hashable] | None = None
    ) -> list[Queued[Payload]]:
        """Up to `limit` items, cancelled ones left out, `[]` when nothing came within `wait_s`.

        With `same`, only items for which it gives what it gives for the first one; the others keep their
        place.
        """

    def __len__(self) -> int: ...
