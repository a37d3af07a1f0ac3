"""The `encoder` stage: features of several audios to states for the decoder, in one launch.

An audio is cut into windows, and a launch has the windows of all its items one after the other. There is no
padding but in the last window of each audio, and a window's result depends on that window alone: so audios of
any length share a launch, and the cache may give what another launch made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sample_engine.config.settings import Settings
from sample_engine.device import Buffer, Device, Event
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.asr_sizes import ASR_SIZES, FRAMES_A_WINDOW, POSITIONS_A_WINDOW
from sample_engine.models.encoder import encoder_probes, make_encoder
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import size_bytes
from sample_engine.primitives.promise import find_promise
from sample_engine.stages.encoder_cache import EncoderCache
from sample_engine.stages.handoff import hand_off
from sample_engine.stages.payloads import Encoded, Features

STAGE = "encoder"
PROBED_WINDOWS = (1, 2, 3, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class EncoderPending:
    """Results of all items, which are there when `done` has passed."""

    encoded: list[Encoded]
    done: Event


class EncoderStage:
    """A `Stage[Features, EncoderPending, Encoded]`. With `encoder_thread` it works on the second stream."""

    def __init__(self, device: Device, settings: Settings, metrics: Metrics) -> None:
        self.size = ASR_SIZES[settings.size]
        self._device, self._metrics = device, metrics
        self._stream = device.streams[0]
        self._encoder = make_encoder(Weights(self._stream, settings.seed, "encoder."), self.size)
        probes = encoder_probes(self._encoder)
        self.promise = find_promise(device, self._stream, probes, PROBED_WINDOWS)
        self.cache = EncoderCache(metrics)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while nothing runs."""
        self._device.synchronize()
        self._stream = self._device.streams[settings.switches.encoder_thread]
        self._handoff_bytes = settings.handoff_bytes
        self._max_batch = max(1, settings.encoder_max_batch)
        self.cache.configure(enabled=settings.switches.encoder_cache, capacity=settings.encoder_cache_entries)

    @property
    def max_batch(self) -> int:
        return self._max_batch

    def execute_launch(self, items: Sequence[Features]) -> EncoderPending:
        known = {one.digest: self.cache.get(one.digest) for one in items}
        missing = {one.digest: one for one in items if known[one.digest] is None}
        if missing:
            made = self._launch(list(missing.values()))
            known |= dict(zip(missing, made, strict=True))
            for digest, encoded in zip(missing, made, strict=True):
                self.cache.put(digest, encoded)
        self.cache.count(len(items), len(missing))
        results = [one for item in items if (one := known[item.digest]) is not None]
        return EncoderPending(results, self._stream.record_event())

    def execute_resolve(self, pending: EncoderPending) -> list[Encoded]:
        pending.done.synchronize()
        return pending.encoded

    def described(self) -> dict[str, object]:
        """For /server_info."""
        promise = {"promise": self.promise.level, "promise_limited_by": list(self.promise.limited_by)}
        return {**promise, "cache": self.cache.described()}

    def _launch(self, items: Sequence[Features]) -> list[Encoded]:
        windows = [-(-one.positions // POSITIONS_A_WINDOW) for one in items]
        text = f"encoder batch={len(items)} windows={sum(windows)}"
        with self._device.annotate(text):
            states = self._encoder.forward(self._stream, *self._brought(items, windows))
            starts = np.cumsum([0, *windows[:-1]]) * POSITIONS_A_WINDOW
            encoded = [
                self._handed_off(states, int(start), item) for start, item in zip(starts, items, strict=True)
            ]
        self._metrics.add("engine_steps_total", value=STAGE)
        self._metrics.observe("engine_batch_items", len(items), STAGE)
        return encoded

    def _brought(self, items: Sequence[Features], windows: Sequence[int]) -> tuple[Buffer, Buffer]:
        """Frames (windows, FRAMES_A_WINDOW, bands) and positions of each window, on the device."""
        total = sum(windows)
        frames = self._device.pinned((total, FRAMES_A_WINDOW, self.size.encoder.bands), FLOAT32)
        lengths = self._device.pinned((total,), INT64)
        frames.array[...] = 0
        lengths.array[...] = POSITIONS_A_WINDOW
        end = 0
        for item, count in zip(items, windows, strict=True):
            own = frames.array[end : end + count].reshape(-1, self.size.encoder.bands)
            own[: len(item.values)] = item.values
            end += count
            lengths.array[end - 1] = item.positions - (count - 1) * POSITIONS_A_WINDOW
        brought = []
        for slot, dtype in ((frames, FLOAT32), (lengths, INT64)):
            brought.append(self._stream.empty(slot.array.shape, dtype))
            self._stream.copy_in(brought[-1], slot)
        return brought[0], brought[1]

    def _handed_off(self, states: Buffer, start: int, item: Features) -> Encoded:
        """A copy of one item's rows, for it to keep."""
        own = self._stream.empty((item.positions, states.shape[1]), FLOAT32)
        self._stream.launch(kernels.copy, (own, states.narrow(0, start, item.positions)))
        handoff = hand_off(self._device, self._stream, own, size_bytes(own), self._handoff_bytes)
        self._metrics.add("engine_handoffs_total", value="device" if handoff.on_device else "host")
        return Encoded(handoff, item.positions, item.steps)
