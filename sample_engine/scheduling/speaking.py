"""The scheduler of the vocoder: chunks of codes in, audio out to the clients.

A request has a slot here from its welcome (the decoder's thread) until it ends. Slots are opened and closed
by the thread that takes the turns. In a turn one batch is launched, and the batch before is resolved behind
it; if nothing waits, it is resolved at once. A batch holds one chunk of a request; which of them can share a
launch, the stage knows.

Where memory is short, launching and resolving are repeated. Chunks for which that lasts too long are given
up, and their requests fail; the next batch has its turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sample_engine.config.settings import Settings
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.models.vocoder_sizes import SAMPLE_RATE_HZ
from sample_engine.observe.events import EventLog
from sample_engine.observe.held import Held
from sample_engine.observe.metrics import Metrics
from sample_engine.observe.vocabulary import EventName, StageName
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Flight
from sample_engine.scheduling.shortage import Shortage
from sample_engine.stages.handoff import Handoff
from sample_engine.stages.payloads import Audio, CodeChunk
from sample_engine.stages.stage import SlotStage

STAGE: StageName = "vocoder"
Pending = TypeVar("Pending")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Spoken:
    """Frames `start` to `end` of a request; `last` if there are no more."""

    codes: Handoff
    start: int
    end: int
    last: bool

    @property
    def frames(self) -> int:
        return self.end - self.start


Item = Queued[Spoken]


@dataclass(frozen=True, slots=True)
class Launched(Generic[Pending]):
    """A batch in flight; the items keep its inputs alive."""

    items: Sequence[Item]
    pending: Pending
    started_s: float


class Speaker(SlotStage[None, CodeChunk, Pending, Audio], Protocol[Pending]):
    """A vocoder."""

    def give_up(self, pending: Pending) -> None:
        """Forget the chunks of a call that found no memory; it will not be resolved."""


class Speaking(Generic[Pending]):
    """`limit`: items of a batch at most. `window_s`: how long its first item is held for more to come."""

    def __init__(
        self,
        stage: Speaker[Pending],
        queue: StageQueue[Spoken],
        limit: int,
        window_s: float,
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
    ) -> None:
        self._stage = stage
        self._queue = queue
        self._limit = 1 if settings.switches.vocoder_batch == "single" else min(limit, stage.max_batch)
        self._window_s = window_s
        self._looks_ahead = settings.switches.lookahead
        self._metrics = metrics
        self._events = events
        self._held = Held(STAGE, metrics)
        self._shortage = Shortage(STAGE, metrics)
        self._lock = threading.Lock()
        self._room = stage.free_slots
        self._welcomed: list[Flight] = []
        self._slots: dict[Flight, int] = {}
        self._in_flight: Launched[Pending] | None = None

    @property
    def room(self) -> int:
        """Requests that may still be welcomed."""
        return self._room

    def welcome(self, flight: Flight) -> None:
        """Keep a slot for a request; any thread."""
        with self._lock:
            self._room -= 1
            self._welcomed.append(flight)

    def say(self, flight: Flight, spoken: Spoken) -> None:
        """Queue a chunk of a request that was welcomed; waits while the queue is full."""
        self._queue.put(Queued(flight, spoken, time.perf_counter_ns(), spoken.frames))

    @property
    def is_idle(self) -> bool:
        """No slot is taken, nothing is in flight."""
        return self._in_flight is None and not self._slots and not self._welcomed

    def turn(self, wait_s: float) -> bool:
        """One batch; False if none came within `wait_s`."""
        self._dismiss()
        busy = self._in_flight is not None
        batch = self._queue.take(self._limit, 0 if busy else wait_s, 0 if busy else self._window_s)
        self._open()
        self._note_received(batch)
        launched = self._launch(batch) if batch else None
        self.drain()
        self._in_flight = launched
        if launched is not None and not self._looks_ahead:
            self.drain()
        return bool(batch) or busy

    def drain(self) -> None:
        """Resolve what is in flight, if anything."""
        launched, self._in_flight = self._in_flight, None
        if launched is not None:
            self._resolve(launched)

    def _open(self) -> None:
        """Slots for all who were welcomed since the last look."""
        with self._lock:
            welcomed, self._welcomed = self._welcomed, []
        for flight in welcomed:
            slot = self._slots[flight] = self._stage.open(None)
            while not self._stage.advance(slot):
                pass

    def _dismiss(self) -> None:
        """Close the slots of all requests that have ended, for whatever reason."""
        self._open()
        for flight in [one for one in self._slots if one.ended]:
            self._stage.close(self._slots.pop(flight))
            with self._lock:
                self._room += 1

    def _launch(self, batch: Sequence[Item]) -> Launched[Pending] | None:
        """None if there is no memory for it."""
        started_s = time.perf_counter()
        self._tell(batch, "code2wav_decode_start")
        chunks = [CodeChunk(self._slots[one.flight], one.payload.codes, one.payload.frames) for one in batch]
        try:
            pending = self._persist(batch, lambda: self._stage.execute_launch(chunks))
        except OutOfDeviceMemory as error:
            _fail(batch, error)
            return None
        self._tell(batch, "code2wav_decode_launched")
        return Launched(batch, pending, started_s)

    def _resolve(self, launched: Launched[Pending]) -> None:
        try:
            audio = self._persist(launched.items, lambda: self._stage.execute_resolve(launched.pending))
        except OutOfDeviceMemory as error:
            self._stage.give_up(launched.pending)
            _fail(launched.items, error)
            return
        self._held.resolved(len(launched.items), launched.started_s)
        self._tell(launched.items, "code2wav_decode_end")
        for item, one in zip(launched.items, audio, strict=True):
            self._answer(item, one)

    def _persist(self, batch: Sequence[Item], action: Callable[[], Value]) -> Value:
        """Do it, again and again while memory is short; raises OutOfDeviceMemory if that lasts, or if nobody
        waits for the batch any more.
        """
        while True:
            try:
                value = action()
            except OutOfDeviceMemory:
                self.drain()
                if self._shortage.is_hopeless() or all(one.flight.ended for one in batch):
                    raise
            else:
                self._shortage.over()
                return value

    def _note_received(self, batch: Sequence[Item]) -> None:
        for one in batch:
            request_id, start = one.flight.request.request_id, one.payload.start
            if start == 0:
                self._events.record(request_id, STAGE, "stage_input_received", from_stage="ar")
            self._events.record(
                request_id, STAGE, "stage_stream_chunk_received", from_stage="ar", chunk_id=start
            )

    def _answer(self, item: Item, audio: Audio) -> None:
        flight, spoken = item.flight, item.payload
        if flight.pieces == 0:
            self._tell([item], "code2wav_first_audio")
        self._metrics.add("engine_audio_seconds_total", len(audio.samples) / SAMPLE_RATE_HZ)
        flight.send(audio.samples.tobytes())
        if spoken.last:
            self._events.record(flight.request.request_id, STAGE, "stage_complete", terminal=True)
            flight.end("done", steps=spoken.end)

    def _tell(self, items: Sequence[Item], event: EventName) -> None:
        for one in items:
            self._events.record(
                one.flight.request.request_id, STAGE, event, frames=one.payload.frames, batch_size=len(items)
            )


def _fail(batch: Sequence[Item], error: OutOfDeviceMemory) -> None:
    for one in batch:
        one.flight.end("failed", str(error))
