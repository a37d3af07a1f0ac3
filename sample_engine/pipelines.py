"""From settings to a pipeline on a device. A new pipeline is one more function here."""

from __future__ import annotations

from collections.abc import Callable

from sample_engine.config.settings import Pipeline as PipelineName
from sample_engine.config.settings import Settings
from sample_engine.device import Device
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.asr import AsrPipeline, AsrStages
from sample_engine.scheduling.pipeline import OnFailure, Pipeline
from sample_engine.scheduling.tts import TtsPipeline, TtsStages
from sample_engine.stages.ar import ArStage
from sample_engine.stages.asr import AsrStage
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.vocoder import VocoderStage

Maker = Callable[[Device, Settings, Metrics, EventLog, OnFailure], Pipeline]


def make_pipeline(
    device: Device, settings: Settings, metrics: Metrics, events: EventLog, on_failure: OnFailure
) -> Pipeline:
    """Weights, graphs, threads; raises what the device raises."""
    return MAKERS[settings.pipeline](device, settings, metrics, events, on_failure)


def _tts(
    device: Device, settings: Settings, metrics: Metrics, events: EventLog, on_failure: OnFailure
) -> Pipeline:
    first, second = device.streams
    stages = TtsStages(
        device,
        ArStage(device, first, settings, metrics),
        VocoderStage(device, second, settings, metrics),
    )
    return TtsPipeline(stages, settings, metrics, events, on_failure)


def _asr(
    device: Device, settings: Settings, metrics: Metrics, events: EventLog, on_failure: OnFailure
) -> Pipeline:
    stages = AsrStages(
        device,
        EncoderStage(device, settings, metrics),
        AsrStage(device, device.streams[0], settings, metrics),
    )
    return AsrPipeline(stages, settings, metrics, events, on_failure)


MAKERS: dict[PipelineName, Maker] = {"tts": _tts, "asr": _asr}
