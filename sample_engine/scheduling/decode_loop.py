"""The loop of a decoder, in two forms: one step at a time, and one step ahead.

    synchronous                            lookahead
    launch(N)                              launch(N)
    resolve(N)   host waits for device     resolve(N-1)   device works on N meanwhile
    collect(N)   device waits for host     collect(N-1)

A turn runs one step of whoever is on the board. Looking ahead means to launch before it is known who
finished: a row that ended in N-1 is in N once more, and its result there belongs to nobody. It is dropped by
tenant, not by slot, for the slot may have been closed and opened anew in between. Nothing is freed here: the
board closes a slot when it collects the last frame, once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sample_engine.observe.held import Held
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.stage import Stage

Result = TypeVar("Result")
ResultIn = TypeVar("ResultIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)
Pending = TypeVar("Pending")


class Tenant(Protocol):
    """A request in a slot. `ended`: finished, cancelled or failed; its later results are dropped."""

    @property
    def slot(self) -> int: ...
    @property
    def ended(self) -> bool: ...


Who = TypeVar("Who", bound=Tenant)


class Board(Protocol[Who, ResultIn]):
    """Who runs. The scheduler admits and cancels between turns."""

    def running(self) -> Sequence[Who]:
        """All tenants whose slots are ready."""

    def collect(self, tenant: Who, result: ResultIn) -> None:
        """Take one result; ends the tenant and closes its slot after the last one."""


class DecodeStage(Stage[int, Pending, ResultOut], Protocol[Pending, ResultOut]):
    """A stage that can say whether its next step needs the host."""

    @property
    def lookahead_refusal(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Launched(Generic[Who, Pending]):
    """A step in flight, and whose rows are in it."""

    tenants: Sequence[Who]
    pending: Pending
    started_s: float


class DecodeLoop(Generic[Who, Pending, Result]):
    """`lookahead` may be switched between turns; below `min_batch` there is too little to hide."""

    def __init__(
        self,
        stage: DecodeStage[Pending, Result],
        board: Board[Who, Result],
        metrics: Metrics,
        name: str,
        *,
        lookahead: bool,
        min_batch: int,
    ) -> None:
        self.lookahead = lookahead
        self._stage = stage
        self._board = board
        self._metrics = metrics
        self._name = name
        self._held = Held(name, metrics)
        self._min_batch = min_batch
        self._in_flight: Launched[Who, Pending] | None = None

    @property
    def is_idle(self) -> bool:
        """Nothing runs, and nothing is in flight."""
        return self._in_flight is None and not self._board.running()

    def turn(self) -> None:
        """One step of all who run; returns at once when nobody does."""
        tenants = self._board.running()
        if not tenants:
            self.drain()
        elif self._may_look_ahead(len(tenants)):
            self._lookahead_turn(tenants)
        else:
            self.drain()
            self._synchronous_turn(self._board.running())

    def drain(self) -> None:
        """Resolve what is in flight, if anything."""
        launched, self._in_flight = self._in_flight, None
        if launched is not None:
            self._resolve(launched)

    def _synchronous_turn(self, tenants: Sequence[Who]) -> None:
        if tenants:
            self._resolve(self._launch(tenants))
            self._count("sync_steps")

    def _lookahead_turn(self, tenants: Sequence[Who]) -> None:
        launched = self._launch(tenants)
        self.drain()
        self._in_flight = launched
        self._count("lookahead_steps")

    def _launch(self, tenants: Sequence[Who]) -> Launched[Who, Pending]:
        slots = [one.slot for one in tenants]
        started_s = time.perf_counter()
        return Launched(tuple(tenants), self._stage.execute_launch(slots), started_s)

    def _resolve(self, launched: Launched[Who, Pending]) -> None:
        results = self._stage.execute_resolve(launched.pending)
        self._held.resolved(len(launched.tenants), launched.started_s)
        for tenant, result in zip(launched.tenants, results, strict=True):
            if tenant.ended:
                self._count("dropped_rows")
            else:
                self._board.collect(tenant, result)

    def _may_look_ahead(self, batch: int) -> bool:
        if not self.lookahead or batch < self._min_batch:
            return False
        if self._stage.lookahead_refusal:
            self._count("lookahead_refused")
            return False
        return True

    def _count(self, what: str) -> None:
        self._metrics.add(f"engine_{what}_total", value=self._name)
