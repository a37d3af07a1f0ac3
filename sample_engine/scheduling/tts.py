"""The tts pipeline: build workers, the `ar` thread, the `vocoder` thread, and the two queues between them.

Under the policy `unified` the ar thread drives both stages in turn and there is no vocoder thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from sample_engine.config.settings import Settings
from sample_engine.device import Device
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.admission import Admission
from sample_engine.scheduling.decoding import Decoding
from sample_engine.scheduling.described import Graphed, described
from sample_engine.scheduling.outlets import TtsOutlet
from sample_engine.scheduling.pipeline import OnFailure
from sample_engine.scheduling.policy import PLANS
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Flight, Kind
from sample_engine.scheduling.resting import IDLE_S, rest
from sample_engine.scheduling.runner import Runner
from sample_engine.scheduling.speaking import Speaker, Speaking, Spoken
from sample_engine.scheduling.staffed import Staffed
from sample_engine.stages.ar import ArStage
from sample_engine.stages.payloads import Frame, Prompt
from sample_engine.stages.preprocess import prompt_of
from sample_engine.stages.slot_decoder import StepPending

MS = 1e-3


class VocoderLike(Speaker[Any], Graphed, Protocol):
    """The vocoder, or another that can be told the same."""


@dataclass(frozen=True, slots=True)
class TtsStages:
    """The stages on one device: the decoder on stream 0, the vocoder on stream 1."""

    device: Device
    ar: ArStage
    vocoder: VocoderLike


class TtsPipeline(Staffed):
    """A `Pipeline`."""

    kinds: frozenset[Kind] = frozenset({"speech", "completion"})

    def __init__(
        self,
        stages: TtsStages,
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
        on_failure: OnFailure,
    ) -> None:
        plan = PLANS[settings.policy]
        self._stages = stages
        self._metrics = metrics
        self._events = events
        self._on_failure = on_failure
        self._waiting: StageQueue[Prompt] = StageQueue("ar", metrics, order=plan.order)
        self._speaking = _speaking(stages.vocoder, settings, metrics, events)
        outlet = TtsOutlet(stages.ar, self._speaking, settings, metrics, events)
        self._decoding: Decoding[Prompt, StepPending, Frame] = Decoding(
            "ar", stages.ar, self._waiting, outlet, settings, metrics, events
        )
        if plan.shares_thread:
            self._runners = [Runner("ar", self._turn_of_both, on_failure)]
        else:
            self._runners = [
                Runner("ar", self._turn_of_ar, on_failure),
                Runner("vocoder", self._turn_of_vocoder, on_failure),
            ]
        self._admission = Admission(self._build, settings.limits, metrics)

    @property
    def is_idle(self) -> bool:
        waits = self._admission.building or len(self._waiting)
        return not waits and self._decoding.is_idle and self._speaking.is_idle

    def renewed(self, settings: Settings) -> TtsPipeline:
        self.stop()
        for stage in (self._stages.ar, self._stages.vocoder):
            stage.configure(settings)
        return TtsPipeline(self._stages, settings, self._metrics, self._events, self._on_failure)

    def describe(self) -> dict[str, object]:
        return {"ar": described(self._stages.ar), "vocoder": described(self._stages.vocoder)}

    def _build(self, flight: Flight) -> None:
        """What a build worker does: the text becomes a prompt and waits for a slot."""
        request, record = flight.request, self._events.record
        record(request.request_id, "ar", "scheduler_request_build_start")
        record(request.request_id, "preprocess", "preprocess_start")
        prompt = prompt_of(request, self._stages.ar.size)
        record(request.request_id, "preprocess", "preprocess_end")
        record(request.request_id, "preprocess", "stage_hop_sent", to_stage="ar")
        record(request.request_id, "preprocess", "stage_complete", next="ar")
        record(request.request_id, "ar", "stage_input_received", from_stage="preprocess")
        record(request.request_id, "ar", "scheduler_request_build_end")
        record(request.request_id, "ar", "scheduler_queue_enter")
        self._waiting.put(Queued(flight, prompt, time.perf_counter_ns(), prompt.steps))

    def _turn_of_ar(self) -> None:
        if not self._decoding.turn():
            rest(self._waiting, self._waiting, self._stages.device)

    def _turn_of_vocoder(self) -> None:
        self._speaking.turn(IDLE_S)

    def _turn_of_both(self) -> None:
        worked = self._decoding.turn()
        while self._speaking.turn(wait_s=0):
            worked = True
        if not worked:
            rest(self._waiting, self._waiting, self._stages.device)


def _speaking(vocoder: VocoderLike, settings: Settings, metrics: Metrics, events: EventLog) -> Speaking[Any]:
    """With a queue, batch limit and wait window of its own, or under `unified` with those of the decoder."""
    plan = PLANS[settings.policy]
    if plan.shares_thread:
        chunks: StageQueue[Spoken] = StageQueue("vocoder", metrics)
        limit, window_s = settings.limits.max_running_requests, 0.0
    else:
        chunks = StageQueue("vocoder", metrics, settings.vocoder_queue, plan.order)
        limit, window_s = settings.vocoder_max_batch, settings.vocoder_wait_ms * MS
    return Speaking(vocoder, chunks, limit, window_s, settings, metrics, events)
