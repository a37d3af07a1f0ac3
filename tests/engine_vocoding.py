"""What tests of the engine's vocoder share: a tiny stage, and streams of codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sample_engine.config.resolve import resolve
from sample_engine.device import Device
from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.sizes import CODEBOOKS
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.handoff import hand_off
from sample_engine.stages.payloads import CodeChunk
from sample_engine.stages.stage import execute
from sample_engine.stages.vocoder import VocoderStage

BUDGET_BYTES = 512 << 20
PINNED_BYTES = 32 << 20
Codes = npt.NDArray[np.int64]
Samples = npt.NDArray[np.int16]


@dataclass
class Studio:
    """A stage with its device and counters; codes come from the device's other stream, as in the engine."""

    device: Device
    stage: VocoderStage
    metrics: Metrics
    on_device: bool = True

    def open(self, count: int = 1) -> list[int]:
        slots = [self.stage.open() for _ in range(count)]
        assert all(self.stage.advance(slot) for slot in slots)
        return slots

    def close(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self.stage.close(slot)

    def chunk(self, slot: int, codes: Codes) -> CodeChunk:
        stream, pinned = self.device.streams[0], self.device.pinned(codes.shape, INT64)
        pinned.array[...] = codes
        buffer = stream.empty(codes.shape, INT64)
        stream.copy_in(buffer, pinned)
        limit_bytes = codes.nbytes if self.on_device else 0
        return CodeChunk(slot, hand_off(self.device, stream, buffer, codes.nbytes, limit_bytes), len(codes))

    def speak(self, *chunks: tuple[int, Codes]) -> list[Samples]:
        """Samples of one call."""
        return [one.samples for one in execute(self.stage, [self.chunk(*chunk) for chunk in chunks])]

    def stream(self, codes: Codes, cuts: Sequence[int]) -> Samples:
        """All samples of a stream that comes in chunks of these lengths, alone."""
        [slot] = self.open()
        parts = np.split(codes, np.cumsum(cuts)[:-1])
        samples = [self.speak((slot, part))[0] for part in parts]
        self.close([slot])
        return np.concatenate(samples)

    def count(self, name: str, value: str = "vocoder") -> float:
        return self.metrics.get(f"engine_{name}_total", value)


@contextmanager
def studio_on(device: Device, **options: Any) -> Iterator[Studio]:
    """A tiny stage; options are settings by their flat names, over the baseline."""
    settings = resolve(options={"size": "tiny", "preset": "baseline", **options}).settings
    with Metrics() as metrics:
        made = Studio(device, VocoderStage(device, device.streams[1], settings, metrics), metrics)
        yield made
        made.stage.graphs.close()


@contextmanager
def device_for_vocoders(budget_bytes: int = BUDGET_BYTES) -> Iterator[EmulatedDevice]:
    with EmulatedDevice(budget_bytes, pinned_bytes=PINNED_BYTES) as device:
        yield device


def codes_of(seed: int, frames: int) -> Codes:
    """Random codes."""
    return np.random.default_rng(seed).integers(0, 16, (frames, CODEBOOKS))
