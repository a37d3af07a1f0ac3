"""The run of one load process: sends, writes down what ended, tries again where that is asked for, and ends.

Everything happens in callbacks of one event loop. When a request is sent and on which slot is what closed and
open loops differ in (`loops.py`); the rest of it is here. What has ended is settled (written down, its slot
freed) a few at a time between two looks at the sockets: where many answers end together, stamps of what comes
in do not wait for all of that.

    warm-up, measured    without a break between them: `Agenda` says which
    drain                nothing new is sent; what is left after `drain_s` is recorded as unfinished
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from layers.collectors.load.agenda import Agenda, Next
from layers.collectors.load.connection import Connection
from layers.collectors.load.connections import Connections
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.flight import Count, Flight
from layers.collectors.load.outcomes import error_text, outcome_of_status
from layers.collectors.load.plan import AfterShed, LoadPlan, ShedRule
from layers.collectors.load.records import Outcome, Phase
from layers.collectors.load.stock import Stock
from layers.collectors.load.timer import Timer
from layers.collectors.load.watchdog import PERIOD_NS, overdue
from layers.collectors.load.wire_log import WireLog
from parsers.errors import StoreError

NS_PER_S = 1_000_000_000
SETTLED_AT_ONCE = 4
"""Ended requests between two looks at the sockets."""
HOPELESS = 200
"""Failures in a row, or two for each slot where those are more: the server is broken, and a closed loop would
ask it ten thousand times a second."""


class Why(StrEnum):
    """Why a run ended."""

    DONE = "done"
    """all requests were sent, or the time was up, and all that was sent has ended"""
    NOT_DRAINED = "not-drained"
    """as DONE, with requests that did not end in time"""
    SERVER_GONE = "server-gone"
    """no connection, and no answer for `server_gone_s`"""
    ONLY_FAILURES = "only-failures"
    STOPPED = "stopped"
    """by whoever started it"""
    NOT_WRITTEN = "not-written"
    """the disk is full, or the folder went away"""


class Driver(ABC):
    """One process's part of a run. `run` returns why it ended; `error` then says more where there is more."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        plan: LoadPlan,
        process: int,
        stocks: Mapping[Phase, Stock],
        log: WireLog,
        flight: Flight,
    ) -> None:
        self._loop, self._plan, self._process = loop, plan, process
        self._stocks, self._log, self._flight = stocks, log, flight
        self.connections = Connections(loop, plan.target, plan.timeouts.connect_s, self._ended)
        self._clock: Timer
        self._pauses: set[asyncio.TimerHandle] = set()
        self._over: deque[tuple[Connection | None, Exchange]] = deque()
        self._in_flight = self._failures = 0
        self._hopeless = max(HOPELESS, 2 * (plan.load.concurrency or 0))
        self._last_sign_ns = self._drain_until_ns = 0
        self._agenda = Agenda(plan, process, 0)
        self._finished: asyncio.Future[Why] = loop.create_future()
        self._ending: Why | None = None
        self.error = ""
        self.reads = 0
        loop.set_exception_handler(self._on_fault)

    @abstractmethod
    def _begin_at(self, begin_ns: int) -> None:
        """Arrange for the first requests."""

    @abstractmethod
    def _due(self, due_ns: int, count: int) -> None:
        """The clock has fired: something was due to be sent."""

    @abstractmethod
    def _freed(self, slot: int, at_ns: int, *, no_connection: bool) -> None:
        """A request of this slot is over; what comes next on it?"""

    @abstractmethod
    def _unsent(self) -> int:
        """Requests that are due and wait for a slot."""

    @abstractmethod
    def _end(self) -> None:
        """Send nothing more; record what is due and was not sent."""

    async def run(self, begin_ns: int) -> Why:
        """Begin at this moment, and go on to the end."""
        self._agenda = Agenda(self._plan, self._process, begin_ns)
        self._last_sign_ns = begin_ns
        self._clock, watchdog = Timer(self._loop, self._due), Timer(self._loop, self._watch)
        watchdog.every(begin_ns + PERIOD_NS, PERIOD_NS)
        self._begin_at(begin_ns)
        try:
            return await self._finished
        finally:
            self._clock.close()
            watchdog.close()
            self.connections.close()

    def stop(self, why: Why = Why.STOPPED, error: str = "") -> None:
        """Take up nothing new. What is in flight may drain where the run is DONE, else it is cut off."""
        if self._ending is not None:
            return
        self._ending, self.error = why, error
        self._drain_until_ns = time.monotonic_ns()
        if why is Why.DONE:
            self._drain_until_ns += int(self._plan.extent.drain_s * NS_PER_S)
            self._finish_if_idle()
        else:
            self._loop.call_soon(self._cut_off)

    def _on_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A fault of the client's own code ends the run: it must not go on with a slot less."""
        if not self._finished.done():
            fault = context.get("exception") or RuntimeError(context["message"])
            self._finished.set_exception(fault)

    def _take(self, intended_ns: int) -> Next | None:
        """What is next on the agenda; the run begins to end when nothing is."""
        if self._ending is not None:
            return None
        following = self._agenda.take(intended_ns)
        if following is None:
            self.stop(Why.DONE)
        self._flight.put(Count.MEASURED_SINCE_NS, self._agenda.measured_since_ns)
        return following

    def _send(
        self, slot: int, following: Next, intended_ns: int, attempt: int = 1, *, new: bool = False
    ) -> None:
        exchange = self._exchange(slot, following, intended_ns, attempt)
        self._in_flight += 1
        self._flight.count(Count.SENT)
        self._flight.began(exchange)
        self.connections.send(exchange, new=new)

    def _exchange(self, slot: int, following: Next, intended_ns: int, attempt: int) -> Exchange:
        phase, sequence = following
        item, request = self._stocks[phase].take(sequence)
        return Exchange(sequence, attempt, phase, item, request, intended_ns, slot)

    def _ended(self, connection: Connection | None, exchange: Exchange) -> None:
        if not self._over:
            self._loop.call_soon(self._settle_some)
        self._over.append((connection, exchange))

    def _settle_some(self) -> None:
        for _ in range(min(SETTLED_AT_ONCE, len(self._over))):
            self._settle(*self._over.popleft())
        if self._over:
            self._loop.call_soon(self._settle_some)

    def _settle(self, connection: Connection | None, exchange: Exchange) -> None:
        self._write(exchange)
        self._flight.ended(exchange)
        self._in_flight -= 1
        self.reads += exchange.reads
        if connection is not None:
            self.connections.give_back(connection)
        outcome = _outcome(exchange)
        self._note(exchange, outcome)
        wait_s = _retry_wait_s(exchange, outcome, self._plan.shed)
        if wait_s is not None and self._ending is None:
            again = partial(self._send_again, exchange)
            self._after(wait_s, again)
        else:
            self._agenda.ended(exchange.phase)
            at_ns = exchange.end_ns
            self._freed(exchange.slot, at_ns, no_connection=outcome is Outcome.REFUSED)
        self._finish_if_idle()

    def _write(self, exchange: Exchange) -> None:
        try:
            self._log.append(exchange)
        except StoreError as error:
            self.stop(Why.NOT_WRITTEN, str(error))

    def _note(self, exchange: Exchange, outcome: Outcome) -> None:
        """Keep the live counts, and stop where nothing can come of it any more."""
        counted = {Outcome.OK: Count.OK, Outcome.SHED: Count.SHED}.get(outcome, Count.FAILED)
        self._flight.count(counted)
        self._flight.put(Count.READS, self.reads)
        if exchange.reads:
            self._last_sign_ns = exchange.end_ns
        if outcome is Outcome.REFUSED:
            silent_s = (exchange.end_ns - self._last_sign_ns) / NS_PER_S
            if silent_s >= self._plan.server_gone_s:
                self.stop(Why.SERVER_GONE, f"{exchange.error}; no answer for {silent_s:.1f} s")
            return
        self._failures = self._failures + 1 if counted is Count.FAILED else 0
        if self._failures >= self._hopeless:
            said = error_text(b"".join(exchange.parts)) if outcome is Outcome.HTTP_ERROR else ""
            what = exchange.error or " ".join(filter(None, (outcome, str(exchange.status or ""), said)))
            self.stop(Why.ONLY_FAILURES, f"{self._failures} requests failed in a row; the last one: {what}")

    def _send_again(self, exchange: Exchange) -> None:
        """The same request; a stale connection must not be followed by another one."""
        following, stale = Next(exchange.phase, exchange.sequence), exchange.ending is Outcome.STALE
        self._send(exchange.slot, following, exchange.intended_ns, exchange.attempt + 1, new=stale)

    def _after(self, wait_s: float, call: partial[None]) -> None:
        """Call it after a pause, or at once; never once the run is cut off."""

        def resume() -> None:
            self._pauses.discard(handle)
            call()
            self._finish_if_idle()

        handle = self._loop.call_later(wait_s, resume)
        self._pauses.add(handle)

    def _watch(self, due_ns: int, count: int) -> None:
        now_ns = time.monotonic_ns()
        for connection, exchange in self.connections.busy():
            if late := overdue(exchange, now_ns, self._plan.timeouts):
                connection.give_up(late.ending, late.error)
        if self._agenda.time_is_up(now_ns):
            self._due(now_ns, 1)  # what fell due before the end, where this look comes before the clock's
            self.stop(Why.DONE)
        if self._ending is Why.DONE and now_ns >= self._drain_until_ns and not self._finished.done():
            self._ending = Why.NOT_DRAINED
            self.error = f"{self._in_flight} requests did not end in {self._plan.extent.drain_s:g} s"
            self._cut_off()

    def _cut_off(self) -> None:
        for pause in self._pauses:
            pause.cancel()
        self._pauses.clear()
        self._end()
        self.connections.close()
        self._finish_if_idle()

    def _finish_if_idle(self) -> None:
        if self._ending is None or self._in_flight or self._pauses or self._unsent():
            return
        if not self._finished.done():
            self._end()
            self._finished.set_result(self._ending)


def _outcome(exchange: Exchange) -> Outcome:
    if exchange.ending is not Outcome.OK:
        return exchange.ending
    if exchange.served:
        return Outcome.OK
    return outcome_of_status(exchange.status, b"".join(exchange.parts))


def _retry_wait_s(exchange: Exchange, outcome: Outcome, rule: ShedRule) -> float | None:
    """How long to wait before the same request goes out once more; None where it does not."""
    if outcome is Outcome.STALE:
        return 0.0
    if outcome is Outcome.SHED and rule.then is AfterShed.RETRY and exchange.attempt < rule.max_attempts:
        return min(rule.backoff_s * 2.0 ** (exchange.attempt - 1), rule.max_backoff_s)
    return None
