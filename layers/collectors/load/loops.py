"""The two ways to offer load: a closed loop keeps N in flight, an open one keeps to a schedule of arrivals.

Closed: a slot's next request was intended to start when the one before it ended. Open: at its arrival,
whatever the server does; an arrival that finds no slot free waits in the client, and its latency counts that.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

from layers.collectors.load.agenda import Next
from layers.collectors.load.arrivals import arrivals, ramp
from layers.collectors.load.driver import Driver
from layers.collectors.load.plan import LoadPlan, share_of
from layers.collectors.load.records import Outcome

RECONNECT_WAIT_S = 0.25
"""Before a slot of a closed loop that found no connection tries again."""


def slots_of(plan: LoadPlan, process: int) -> int:
    """How many requests this process may have in flight."""
    return share_of(plan.load.concurrency or plan.max_in_flight, plan.processes, process)


class ClosedLoop(Driver):
    """Each slot sends its next request when its last one has ended."""

    def _begin_at(self, begin_ns: int) -> None:
        slots = slots_of(self._plan, self._process)
        self._starts = deque(enumerate(ramp(slots, self._plan.extent.ramp_s, begin_ns)))
        self._clock.at(begin_ns)

    def _due(self, due_ns: int, count: int) -> None:
        now_ns = time.monotonic_ns()
        while self._starts and self._starts[0][1] <= now_ns:
            self._next(*self._starts.popleft())
        if self._starts:
            self._clock.at(self._starts[0][1])

    def _next(self, slot: int, intended_ns: int) -> None:
        if (following := self._take(intended_ns)) is not None:
            self._send(slot, following, intended_ns)

    def _freed(self, slot: int, at_ns: int, *, no_connection: bool) -> None:
        if self._ending is not None:
            return
        if no_connection:
            self._after(RECONNECT_WAIT_S, partial(self._resume, slot))
        else:
            self._next(slot, at_ns)

    def _resume(self, slot: int) -> None:
        self._next(slot, time.monotonic_ns())

    def _unsent(self) -> int:
        return 0

    def _end(self) -> None:
        self._starts.clear()


class OpenLoop(Driver):
    """Sends at each arrival while fewer than `max_in_flight` are in flight."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._free = list(reversed(range(slots_of(self._plan, self._process))))
        self._due_now: deque[tuple[Next, int]] = deque()

    def _begin_at(self, begin_ns: int) -> None:
        load, of = self._plan.load, (self._plan.processes, self._process)
        assert load.rate_per_s is not None
        self._arrivals: Iterator[int] = arrivals(
            load.arrivals, load.rate_per_s, begin_ns, self._plan.seed, *of
        )
        self._next_ns = next(self._arrivals)
        self._clock.at(self._next_ns)

    def _due(self, due_ns: int, count: int) -> None:
        now_ns = time.monotonic_ns()
        while self._next_ns <= now_ns and (following := self._take(self._next_ns)) is not None:
            self._due_now.append((following, self._next_ns))
            self._next_ns = next(self._arrivals)
        if self._ending is None:
            self._clock.at(self._next_ns)
        self._send_due()  # also what was due before the run began to end, all in one late look

    def _send_due(self) -> None:
        while self._due_now and self._free:
            self._send(self._free.pop(), *self._due_now.popleft())

    def _freed(self, slot: int, at_ns: int, *, no_connection: bool) -> None:
        self._free.append(slot)
        self._send_due()

    def _unsent(self) -> int:
        return len(self._due_now)

    def _end(self) -> None:
        """Arrivals that never found a slot are requests too."""
        while self._due_now:
            following, intended_ns = self._due_now.popleft()
            exchange = self._exchange(0, following, intended_ns, 1)
            exchange.end_ns = time.monotonic_ns()
            exchange.ending, exchange.error = Outcome.UNFINISHED, "never sent: no slot of the client was free"
            self._write(exchange)


def driver_for(plan: LoadPlan) -> type[Driver]:
    """The class that offers this plan's load."""
    return OpenLoop if plan.load.concurrency is None else ClosedLoop
