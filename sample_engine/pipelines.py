"""From settings to a pipeline on a device. A new pipeline is one more function here."""

from __future__ import annotations

from sample_engine.config.settings import Settings
from sample_engine.device import Device
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.pipeline import OnFailure, Pipeline
from sample_engine.scheduling.tts import TtsPipeline, TtsStages
from sample_engine.stages.ar import ArStage
from sample_engine.stages.vocoder import VocoderStage


class NoSuchPipeline(NotImplementedError):
    """A pipeline that this version cannot run."""


def make_pipeline(
    device: Device, settings: Settings, metrics: Metrics, events: EventLog, on_failure: OnFailure
) -> Pipeline:
    """Weights, graphs, threads; raises what the device raises."""
    if settings.pipeline != "tts":
        raise NoSuchPipeline(f"the {settings.pipeline} pipeline is not in this version; there is tts")
    first, second = device.streams
    stages = TtsStages(
        device,
        ArStage(device, first, settings, metrics),
        VocoderStage(device, second, settings, metrics),
    )
    return TtsPipeline(stages, settings, metrics, events, on_failure)
