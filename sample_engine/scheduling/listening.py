"""The scheduler of the encoder: features in, encoded audio on to the decoder's queue, a batch a turn.

With `encoder_thread` a thread of its own takes the turns, and the encoder has a stream of its own: the device
gives each stream its kernels in turn, so decode steps become longer but none of them waits for a whole batch.
Without it the decoder's thread takes them, and every batch that is let in stalls all who run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sample_engine.config.settings import Settings
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.observe.events import EventLog
from sample_engine.observe.held import Held
from sample_engine.observe.metrics import Metrics
from sample_engine.observe.vocabulary import EventName, StageName
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Flight
from sample_engine.scheduling.shortage import Shortage
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.payloads import Encoded, Features
from sample_engine.stages.stage import execute

STAGE: StageName = "encoder"
MS = 1e-3
Batch = Sequence[Queued[Features]]


class Listening:
    """`hand_on` gets each item's result, in the order of the queue."""

    def __init__(
        self,
        stage: EncoderStage,
        queue: StageQueue[Features],
        hand_on: Callable[[Flight, Encoded], None],
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
    ) -> None:
        self._stage = stage
        self._queue = queue
        self._hand_on = hand_on
        self._metrics = metrics
        self._events = events
        self._thread = "own" if settings.switches.encoder_thread else "scheduler"
        self._window_s = settings.encoder_wait_ms * MS if settings.switches.encoder_thread else 0.0
        self._held = Held(STAGE, metrics)
        self._shortage = Shortage(STAGE, metrics)
        self._is_encoding = False

    @property
    def is_idle(self) -> bool:
        return not self._is_encoding and not len(self._queue)

    def turn(self, wait_s: float) -> bool:
        """One batch; False if nothing came within `wait_s`."""
        batch = self._queue.take(self._stage.max_batch, wait_s, self._window_s)
        if batch:
            self._is_encoding = True
            self._encode(batch)
            self._is_encoding = False
        return bool(batch)

    def _encode(self, batch: Batch) -> None:
        self._tell(batch, "encoder_start")
        started_s = time.perf_counter()
        encoded = self._persist(batch)
        self._held.resolved(len(batch), started_s)
        self._metrics.add("engine_encoder_batches_total", value=self._thread)
        self._tell(batch, "encoder_end")
        for item, one in zip(batch, encoded, strict=False):
            self._hand_on(item.flight, one)

    def _persist(self, batch: Batch) -> Sequence[Encoded]:
        """Do it, again while memory is short; nothing if that lasts, and then all of them have failed."""
        while True:
            try:
                encoded = execute(self._stage, [one.payload for one in batch])
            except OutOfDeviceMemory as error:
                if self._shortage.is_hopeless():
                    for one in batch:
                        one.flight.end("failed", str(error))
                    return []
            else:
                self._shortage.over()
                return encoded

    def _tell(self, batch: Batch, event: EventName) -> None:
        for one in batch:
            request_id = one.flight.request.request_id
            self._events.record(request_id, STAGE, event, modality="audio", batch_size=len(batch))
