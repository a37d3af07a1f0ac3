"""The asr pipeline: build workers, the encoder, and the decoder's thread behind the one unbounded queue.

build worker   samples -> Features        queue `encoder`, bounded: it makes build workers wait
encoder        Features -> Encoded        queue `prefill`, unbounded: what waits for a slot waits here
decode         Encoded -> prefill, steps -> text
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from sample_engine.config.settings import Settings
from sample_engine.device import Device
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.admission import Admission
from sample_engine.scheduling.decoding import Decoding
from sample_engine.scheduling.described import described
from sample_engine.scheduling.listening import Listening
from sample_engine.scheduling.outlets import AsrOutlet
from sample_engine.scheduling.pipeline import OnFailure
from sample_engine.scheduling.policy import PLANS
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Flight, Kind
from sample_engine.scheduling.resting import IDLE_S, rest
from sample_engine.scheduling.runner import Runner
from sample_engine.scheduling.staffed import Staffed
from sample_engine.stages.asr import AsrStage
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.features import features_of
from sample_engine.stages.payloads import Encoded, Features, Token
from sample_engine.stages.slot_decoder import StepPending


@dataclass(frozen=True, slots=True)
class AsrStages:
    """The stages on one device: the decoder on stream 0, the encoder on either."""

    device: Device
    encoder: EncoderStage
    decode: AsrStage


class AsrPipeline(Staffed):
    """A `Pipeline`."""

    kinds: frozenset[Kind] = frozenset({"transcription"})

    def __init__(
        self,
        stages: AsrStages,
        settings: Settings,
        metrics: Metrics,
        events: EventLog,
        on_failure: OnFailure,
    ) -> None:
        order = PLANS[settings.policy].order
        self._stages = stages
        self._metrics = metrics
        self._events = events
        self._on_failure = on_failure
        self._features: StageQueue[Features] = StageQueue("encoder", metrics, settings.encoder_queue, order)
        self._waiting: StageQueue[Encoded] = StageQueue("prefill", metrics, order=order)
        self._listening = Listening(stages.encoder, self._features, self._hand_on, settings, metrics, events)
        self._decoding: Decoding[Encoded, StepPending, Token] = Decoding(
            "decode", stages.decode, self._waiting, AsrOutlet(metrics), settings, metrics, events, "prefill"
        )
        if settings.switches.encoder_thread:
            self._runners = [
                Runner("decode", self._turn_of_decode, on_failure),
                Runner("encoder", self._turn_of_encoder, on_failure),
            ]
        else:
            self._runners = [Runner("decode", self._turn_of_both, on_failure)]
        self._admission = Admission(self._build, settings.limits, metrics)

    @property
    def is_idle(self) -> bool:
        waits = self._admission.building or len(self._waiting)
        return not waits and self._listening.is_idle and self._decoding.is_idle

    def renewed(self, settings: Settings) -> AsrPipeline:
        self.stop()
        self._stages.encoder.configure(settings)
        self._stages.decode.configure(settings)
        return AsrPipeline(self._stages, settings, self._metrics, self._events, self._on_failure)

    def describe(self) -> dict[str, object]:
        return {"encoder": self._stages.encoder.described(), "decode": described(self._stages.decode)}

    def _build(self, flight: Flight) -> None:
        """What a build worker does: samples become features, and wait for the encoder."""
        request_id, record = flight.request.request_id, self._events.record
        record(request_id, "prefill", "scheduler_request_build_start")
        record(request_id, "preprocess", "preprocess_start")
        features = self._features_of(flight)
        record(request_id, "preprocess", "preprocess_end")
        record(request_id, "preprocess", "stage_hop_sent", to_stage="encoder")
        record(request_id, "preprocess", "stage_complete", next="encoder")
        record(request_id, "encoder", "stage_input_received", from_stage="preprocess")
        record(request_id, "prefill", "scheduler_request_build_end")
        self._features.put(Queued(flight, features, time.perf_counter_ns(), features.steps))

    def _features_of(self, flight: Flight) -> Features:
        samples = flight.request.samples
        if samples is None or not len(samples):
            raise ValueError("the audio has no samples")
        return features_of(samples, self._stages.encoder.size)

    def _hand_on(self, flight: Flight, encoded: Encoded) -> None:
        """From the encoder to the queue for a slot."""
        request, record = flight.request, self._events.record
        record(request.request_id, "encoder", "stage_hop_sent", to_stage="prefill")
        record(request.request_id, "encoder", "stage_complete", next="prefill")
        record(request.request_id, "prefill", "stage_input_received", from_stage="encoder")
        record(request.request_id, "prefill", "scheduler_queue_enter")
        asked = replace(encoded, steps=min(encoded.steps, request.max_steps or encoded.steps))
        self._waiting.put(Queued(flight, asked, time.perf_counter_ns(), asked.steps))

    def _turn_of_encoder(self) -> None:
        self._listening.turn(IDLE_S)

    def _turn_of_decode(self) -> None:
        if not self._decoding.turn():
            rest(self._waiting, self._waiting, self._stages.device)

    def _turn_of_both(self) -> None:
        encoded = self._listening.turn(wait_s=0)
        if not self._decoding.turn() and not encoded:
            rest(self._waiting, self._features, self._stages.device)
