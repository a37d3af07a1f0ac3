"""The scheduler of a decoder: who has a slot, and what happens in one turn.

    dismiss    those whose requests have ended meanwhile
    let in     those whom the entrance admits (`batching`)
    prepare    a few chunks of prefill, of those who came first
    step       all who are ready, through the synchronous or the lookahead loop (`decode_loop`)

One thread takes the turns. A resident leaves once, and its slot is closed there and nowhere else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sample_engine.config.settings import Settings
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.observe.vocabulary import StageName
from sample_engine.scheduling.batching import Entrance
from sample_engine.scheduling.decode_loop import DecodeLoop, DecodeStage
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Flight
from sample_engine.scheduling.resting import NAP_S
from sample_engine.scheduling.shortage import Shortage
from sample_engine.stages.stage import SlotStage

Opening = TypeVar("Opening")
OpeningIn = TypeVar("OpeningIn", contravariant=True)
Pending = TypeVar("Pending")
Result = TypeVar("Result")
ResultIn = TypeVar("ResultIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)


class DecoderStage(
    SlotStage[OpeningIn, int, Pending, ResultOut],
    DecodeStage[Pending, ResultOut],
    Protocol[OpeningIn, Pending, ResultOut],
):
    """A decoder with slots."""

    def let_go(self) -> bool:
        """Give back memory of closed slots that the device has passed; True when none is left."""


@dataclass(slots=True, eq=False)
class Resident:
    """A request in a slot. `results` it has made, `handed` of them were passed on."""

    flight: Flight
    slot: int
    ready: bool = False
    ended: bool = False
    results: int = 0
    handed: int = 0


class Outlet(Protocol[ResultIn]):
    """Where a decoder's results go. It ends the flights."""

    @property
    def room(self) -> int:
        """How many more requests what lies behind can take."""

    def welcome(self, flight: Flight) -> None:
        """A request got a slot: keep a place for it."""

    def collect(self, resident: Resident, result: ResultIn) -> bool:
        """Take one result; True if it was the last of its request."""


class Decoding(Generic[Opening, Pending, Result]):
    """`name` is the stage in events and metrics; what comes before the first step is told of `opening`, if
    that has a name of its own.
    """

    def __init__(
        self,
        name: StageName,
        stage: DecoderStage[Opening, Pending, Result],
        waiting: StageQueue[Opening],
        outlet: Outlet[Result],
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
        opening: StageName | None = None,
    ) -> None:
        self._name: StageName = name
        self._opening = opening or name
        self._stage = stage
        self._waiting = waiting
        self._outlet = outlet
        self._metrics = metrics
        self._events = events
        self._entrance = Entrance(settings)
        self._prepares_all = settings.prefill_coalesce > 1 or settings.batching == "static"
        self._prefill_chunks = max(1, settings.prefill_chunks)
        self._shortage_of_prefill = Shortage(name, metrics)
        self._shortage = Shortage(name, metrics)
        self._residents: list[Resident] = []
        self._keeps_memory = False
        self._loop = DecodeLoop[Resident, Pending, Result](
            stage,
            self,
            metrics,
            name,
            lookahead=settings.switches.lookahead,
            min_batch=settings.lookahead_min_batch,
        )

    def turn(self) -> bool:
        """One turn; False if there was nothing to do."""
        self._dismiss()
        self._let_in()
        self._show()
        self._persist(self._prepare, self._shortage_of_prefill, self._preparing)
        self._persist(self._loop.turn, self._shortage, self.running)
        works = self._show()
        if self._keeps_memory and not works:
            self._keeps_memory = not self._stage.let_go()
            if self._keeps_memory:
                time.sleep(NAP_S)
        return works or self._keeps_memory

    @property
    def is_idle(self) -> bool:
        """No slot is taken, no step is in flight, and memory of those that left is given back."""
        return not self._works and not self._keeps_memory

    @property
    def _works(self) -> bool:
        return bool(self._residents) or not self._loop.is_idle

    def running(self) -> Sequence[Resident]:
        """Of the board: whose slots are in the next step."""
        return [one for one in self._residents if one.ready]

    def collect(self, tenant: Resident, result: Result) -> None:
        """Of the board: one result of one resident."""
        tenant.results += 1
        self._metrics.add("engine_frames_total")
        if tenant.results == 1:
            self._events.record(tenant.flight.request.request_id, self._name, "scheduler_first_emit")
        if self._outlet.collect(tenant, result):
            self._events.record(tenant.flight.request.request_id, self._name, "stage_complete")
            self._leave(tenant)

    def _dismiss(self) -> None:
        for one in [one for one in self._residents if one.flight.ended]:
            self._leave(one)

    def _leave(self, resident: Resident) -> None:
        resident.ended = self._keeps_memory = True
        self._residents.remove(resident)
        self._stage.close(resident.slot)

    def _let_in(self) -> None:
        oldest_ns = self._waiting.oldest_ns()
        if oldest_ns is None:
            return
        free = min(self._stage.free_slots, self._outlet.room)
        now_ns, running = time.perf_counter_ns(), len(self._residents)
        wanted = self._entrance.admits(now_ns, len(self._waiting), oldest_ns, running, free)
        for item in self._waiting.take(wanted):
            self._open(item)

    def _open(self, item: Queued[Opening]) -> None:
        self._outlet.welcome(item.flight)
        self._residents.append(Resident(item.flight, self._stage.open(item.payload)))
        self._events.record(item.flight.request.request_id, self._opening, "scheduler_prefill_start")

    def _persist(
        self, work: Callable[[], None], shortage: Shortage, concerned: Callable[[], Sequence[Resident]]
    ) -> None:
        """Where memory is short, the next turn tries again; if that lasts, those whom it concerns fail. Who
        cannot be prepared does not keep the others from their steps, which let memory go.
        """
        try:
            work()
            shortage.over()
        except OutOfDeviceMemory as error:
            self._loop.drain()
            if shortage.is_hopeless():
                for one in concerned():
                    one.flight.end("failed", str(error))
                    self._leave(one)

    def _preparing(self) -> Sequence[Resident]:
        return [one for one in self._residents if not one.ready]

    def _prepare(self) -> None:
        """A few chunks; where groups come in together, all of theirs, to disturb the others once."""
        left = sys.maxsize if self._prepares_all else self._prefill_chunks
        for one in self._preparing():
            while left and not one.ready:
                one.ready = self._stage.advance(one.slot)
                left -= 1
            if one.ready:
                self._note_ready(one)

    def _note_ready(self, resident: Resident) -> None:
        request_id, record = resident.flight.request.request_id, self._events.record
        record(request_id, self._opening, "scheduler_prefill_end", batch_size=len(self._residents))
        if self._opening != self._name:
            record(request_id, self._opening, "stage_hop_sent", to_stage=self._name)
            record(request_id, self._opening, "stage_complete", next=self._name)
            record(request_id, self._name, "stage_input_received", from_stage=self._opening)

    def _show(self) -> bool:
        """In the metrics, before a step, which may take long, and after it; True if there is work."""
        self._metrics.set("engine_requests_running", len(self._residents))
        self._metrics.set("engine_requests_waiting", len(self._waiting))
        return self._works
