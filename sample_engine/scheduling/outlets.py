"""Where a decoder's results go.

Frames of the tts decoder go to the vocoder in chunks, or to the client as text. They are handed on a few at a
time, for the first audio to come early and for the vocoder to work while the decoder does. A completion is
the text channel of the same frames. Tokens of the asr decoder go to the client, one piece each.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from sample_engine.config.settings import Settings
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.models.asr_sizes import SAMPLE_RATE_HZ
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.decoding import Resident
from sample_engine.scheduling.request import Flight
from sample_engine.scheduling.shortage import Shortage
from sample_engine.scheduling.speaking import Speaking, Spoken
from sample_engine.stages.handoff import Handoff
from sample_engine.stages.payloads import Frame, Token
from sample_engine.stages.preprocess import syllable_of
from sample_engine.stages.transcript import piece_of


class GivesCodes(Protocol):
    """What an outlet needs of the decoder."""

    def codes(self, slot: int, start: int, frames: int) -> Handoff: ...


class TtsOutlet:
    """An `Outlet[Frame]`."""

    def __init__(
        self,
        stage: GivesCodes,
        speaking: Speaking[Any],
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
    ) -> None:
        self._stage = stage
        self._speaking = speaking
        self._chunk_frames = max(1, settings.chunk_frames)
        self._events = events
        self._shortage = Shortage("ar", metrics)

    @property
    def room(self) -> int:
        return self._speaking.room

    def welcome(self, flight: Flight) -> None:
        if flight.request.kind == "speech":
            self._speaking.welcome(flight)

    def collect(self, resident: Resident, result: Frame) -> bool:
        if resident.flight.request.kind == "speech":
            self._to_vocoder(resident, result)
        else:
            self._to_client(resident.flight, resident.results, result)
        return result.last

    def _to_client(self, flight: Flight, steps: int, frame: Frame) -> None:
        if text := syllable_of(frame.text_id):
            flight.send(text.encode())
        if frame.last:
            flight.end("done", steps=steps)

    def _to_vocoder(self, resident: Resident, frame: Frame) -> None:
        if frame.last or resident.results - resident.handed >= self._chunk_frames:
            self._hand_on(resident, frame.last)

    def _hand_on(self, resident: Resident, last: bool) -> None:
        start, end = resident.handed, resident.results
        codes = self._codes(resident, start, end - start)
        if codes is None:
            return
        resident.handed = end
        request_id = resident.flight.request.request_id
        self._events.record(request_id, "ar", "stage_stream_chunk_sent", to_stage="vocoder", chunk_id=start)
        self._speaking.say(resident.flight, Spoken(codes, start, end, last))

    def _codes(self, resident: Resident, start: int, frames: int) -> Handoff | None:
        """None if the request ended while there was no memory for them."""
        while not resident.flight.ended:
            try:
                codes = self._stage.codes(resident.slot, start, frames)
            except OutOfDeviceMemory as error:
                if self._shortage.is_hopeless():
                    resident.flight.end("failed", str(error))
            else:
                self._shortage.over()
                return codes
        return None


class AsrOutlet:
    """An `Outlet[Token]`. Nothing lies behind it that could be full."""

    room = sys.maxsize

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def welcome(self, flight: Flight) -> None:
        """There is no place to keep."""

    def collect(self, resident: Resident, result: Token) -> bool:
        flight = resident.flight
        if text := piece_of(result.text_id, first=flight.pieces == 0):
            flight.send(text.encode())
        if result.last:
            samples = flight.request.samples
            seconds = 0.0 if samples is None else len(samples) / SAMPLE_RATE_HZ
            self._metrics.add("engine_audio_seconds_total", seconds)
            flight.end("done", steps=resident.results)
        return result.last
