"""How long does a launch of each stage take, by the number of its items, and which batch is the best?

python -m benchmarks.engine_batches [--size small] [--rounds 11]

The stages as in `--preset optimized`, each alone on the emulated device: launched, waited for, read. A round
takes every stage with every batch, forwards and backwards in turn; a measurement is the mean of REPEATS
launches. Decoders are timed in the middle of a decode. The encoder's cache is off. Printed: ms a launch,
items a second, and items a second over those of the smallest batch within a round, each the median of n
rounds; and the best batch, the one with the most items a second. It says which batch to allow; latency is
another matter, since all items of a launch wait for all others.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np

from benchmarks.made_up_audio import samples
from sample_engine.config.resolve import resolve
from sample_engine.config.settings import Settings
from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.sizes import CODEBOOKS
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.request import Request
from sample_engine.stages.ar import ArStage
from sample_engine.stages.asr import AsrStage
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.features import features_of
from sample_engine.stages.handoff import hand_off
from sample_engine.stages.payloads import CodeChunk
from sample_engine.stages.preprocess import prompt_of
from sample_engine.stages.stage import execute
from sample_engine.stages.vocoder import VocoderStage

BATCHES = (4, 8, 16, 32)
STAGES = ("ar", "vocoder", "encoder", "decode")
REPEATS = 8
BUDGET_BYTES = 1 << 30
CHUNK_FRAMES = 5
AUDIO_S = 3.0
STEPS = 3 * REPEATS
MS_PER_S = 1e3

Prepare = Callable[[int], tuple[Callable[[], object], Callable[[], None]]]
"""For a batch: one launch, and what is to be done after the last one."""
Found = dict[tuple[str, int], list[float]]
"""ms a launch, by stage and batch, a value a round."""


class Bench:
    """All four stages on one device."""

    def __init__(self, device: EmulatedDevice, metrics: Metrics, settings: Settings) -> None:
        self._device = device
        first, second = device.streams
        self._ar = ArStage(device, first, settings, metrics)
        self._vocoder = VocoderStage(device, second, settings, metrics)
        self._encoder = EncoderStage(device, settings, metrics)
        self._decode = AsrStage(device, first, settings, metrics)
        audios = [samples(number, AUDIO_S, AUDIO_S) for number in range(max(BATCHES))]
        self._features = [features_of(one, self._encoder.size) for one in audios]
        self._encoded = [execute(self._encoder, [one])[0] for one in self._features]
        self.prepare: Mapping[str, Prepare] = {
            "ar": self._ar_step,
            "vocoder": self._vocoder_step,
            "encoder": self._encoder_step,
            "decode": self._decode_step,
        }

    def _ar_step(self, batch: int) -> tuple[Callable[[], object], Callable[[], None]]:
        requests = [Request(str(n), "speech", f"some words of {n}", max_steps=STEPS) for n in range(batch)]
        return self._decoding(self._ar, [prompt_of(one, self._ar.size) for one in requests])

    def _decode_step(self, batch: int) -> tuple[Callable[[], object], Callable[[], None]]:
        return self._decoding(self._decode, self._encoded[:batch])

    def _decoding(self, stage: Any, openings: list[Any]) -> tuple[Callable[[], object], Callable[[], None]]:
        slots = [_opened(stage, one) for one in openings]
        return lambda: execute(stage, slots), lambda: _close(stage, slots)

    def _vocoder_step(self, batch: int) -> tuple[Callable[[], object], Callable[[], None]]:
        slots = [_opened(self._vocoder, None) for _ in range(batch)]
        chunks = [CodeChunk(slot, self._codes(slot), CHUNK_FRAMES) for slot in slots]
        return lambda: execute(self._vocoder, chunks), lambda: _close(self._vocoder, slots)

    def _codes(self, seed: int) -> Any:
        stream, codes = self._device.streams[1], self._device.pinned((CHUNK_FRAMES, CODEBOOKS), INT64)
        ids = self._vocoder.size.code_ids
        codes.array[...] = np.random.default_rng(seed).integers(0, ids, codes.array.shape)
        buffer = stream.empty(codes.array.shape, INT64)
        stream.copy_in(buffer, codes)
        return hand_off(self._device, stream, buffer, 0, 1)

    def _encoder_step(self, batch: int) -> tuple[Callable[[], object], Callable[[], None]]:
        return lambda: execute(self._encoder, self._features[:batch]), lambda: None


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the engine's stages by batch.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    with opened(asked.size) as (device, bench):
        print(f"{device.name}, size {asked.size}: medians of {asked.rounds} rounds, {REPEATS} launches each")
        report(rounds(bench, asked.rounds))


@contextmanager
def opened(size: str) -> Iterator[tuple[EmulatedDevice, Bench]]:
    options = {
        "size": size,
        "encoder_cache": False,
        "vocoder_max_batch": max(BATCHES),
        "encoder_max_batch": max(BATCHES),
        "graph_budget_bytes": BUDGET_BYTES,
    }
    settings = resolve(options=options).settings
    with (
        EmulatedDevice(BUDGET_BYTES, core=max(os.sched_getaffinity(0))) as device,
        Metrics() as metrics,
    ):
        yield device, Bench(device, metrics, settings)


def rounds(bench: Bench, count: int) -> Found:
    """The first round warms up."""
    found: Found = defaultdict(list)
    cases = [(stage, batch) for stage in STAGES for batch in BATCHES]
    for index in range(count + 1):
        for stage, batch in cases if index % 2 else cases[::-1]:
            launch, finish = bench.prepare[stage](batch)
            launch()
            begun_s = time.perf_counter()
            for _ in range(REPEATS):
                launch()
            took_ms = (time.perf_counter() - begun_s) / REPEATS * MS_PER_S
            finish()
            if index:
                found[stage, batch].append(took_ms)
    return found


def report(found: Found) -> None:
    print(f"{'stage':9}{'batch':>6}{'ms a launch':>13}{'items/s':>9}   over batch {BATCHES[0]}")
    for stage in STAGES:
        speeds = {batch: [batch / took_ms * MS_PER_S for took_ms in found[stage, batch]] for batch in BATCHES}
        for batch, items_per_s in speeds.items():
            gains = [one / other for one, other in zip(items_per_s, speeds[BATCHES[0]], strict=True)]
            print(
                f"{stage:9}{batch:6}{median(found[stage, batch]):13.2f}{median(items_per_s):9.0f}"
                f"   {median(gains):.2f} ({min(gains):.2f} to {max(gains):.2f}, n = {len(gains)})"
            )
        best = max(BATCHES, key=lambda batch: median(speeds[batch]))
        print(f"{stage:9}best batch: {best}")


def _opened(stage: Any, opening: Any) -> int:
    slot: int = stage.open(opening)
    while not stage.advance(slot):
        pass
    return slot


def _close(stage: Any, slots: list[int]) -> None:
    for slot in slots:
        stage.close(slot)


if __name__ == "__main__":
    main()
