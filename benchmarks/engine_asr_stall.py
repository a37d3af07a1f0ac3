"""How long does the running batch stand still while others are encoded, with and without `encoder_thread`?

python -m benchmarks.engine_asr_stall [--size small] [--rounds 40]

Stages alone, without scheduler and prefill. ROWS rows decode, and in the middle of it a batch of audios is
encoded: by the thread that decodes, on its stream, or by a thread of its own on the other stream. Printed are
the usual time between two results, and the longest one of each decode; the arms take turns, the first decode
warms up. And how many kernels a step and a batch are: the device takes one of each stream in turn, so beside
the batch a step takes longer by as many of the batch's kernels as it has itself.
"""

from __future__ import annotations

import argparse
import itertools
import os
import threading
import time
from statistics import median

from benchmarks.made_up_audio import LONGEST_S, samples
from sample_engine.config.resolve import resolve
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.asr import AsrStage
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.features import features_of
from sample_engine.stages.stage import execute

BUDGET_BYTES = 256 << 20
ROWS, AUDIOS = 8, 4
STEPS, BEGUN_AT = 24, 8
"""Of one decode, and before which of them the encoder gets its batch."""
MS_PER_S = 1e3


class Stall:
    """Both stages on one device."""

    def __init__(self, device: EmulatedDevice, size: str, metrics: Metrics) -> None:
        self._settings = {
            own_thread: resolve(
                options={
                    "pipeline": "asr",
                    "size": size,
                    "encoder_cache": False,
                    "encoder_thread": own_thread,
                }
            ).settings
            for own_thread in (False, True)
        }
        self._device = device
        self._encoder = EncoderStage(device, self._settings[False], metrics)
        self._decoder = AsrStage(device, device.streams[0], self._settings[False], metrics)
        self._features = [
            features_of(samples(number, LONGEST_S, LONGEST_S), self._encoder.size) for number in range(AUDIOS)
        ]

    def gaps_ms(self, own_thread: bool) -> list[float]:
        """Between the results of one decode."""
        self._encoder.configure(self._settings[own_thread])
        slots = self._opened()
        worker = threading.Thread(target=self._encode)
        ended_s = [time.perf_counter()]
        for step in range(STEPS):
            if step == BEGUN_AT:
                worker.start() if own_thread else self._encode()
            execute(self._decoder, slots)
            ended_s.append(time.perf_counter())
        if own_thread:
            worker.join()
        for slot in slots:
            self._decoder.close(slot)
        return [(after - before) * MS_PER_S for before, after in itertools.pairwise(ended_s)]

    def kernels(self) -> tuple[int, int]:
        """Of one step, and of one batch of the encoder."""
        slots = self._opened()
        counts = [self._device.counters().kernels]
        for work in (lambda: execute(self._decoder, slots), self._encode):
            work()
            counts.append(self._device.counters().kernels)
        for slot in slots:
            self._decoder.close(slot)
        return counts[1] - counts[0], counts[2] - counts[1]

    def encoding_ms(self) -> float:
        """Of the batch, when nothing else runs."""
        started_s = time.perf_counter()
        self._encode()
        return (time.perf_counter() - started_s) * MS_PER_S

    def _encode(self) -> None:
        execute(self._encoder, self._features)

    def _opened(self) -> list[int]:
        encoded = execute(self._encoder, self._features[:1])[0]
        slots = [self._decoder.open(encoded) for _ in range(ROWS)]
        for slot in slots:
            while not self._decoder.advance(slot):
                pass
        execute(self._decoder, slots)
        return slots


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the stall of the running batch by the encoder.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    with EmulatedDevice(BUDGET_BYTES, core=max(os.sched_getaffinity(0))) as device, Metrics() as metrics:
        stall = Stall(device, asked.size, metrics)
        stall.gaps_ms(own_thread=True)  # warms up
        found = {own: list[list[float]]() for own in (False, True)}
        for index in range(asked.rounds):
            for own in (False, True) if index % 2 else (True, False):
                found[own].append(stall.gaps_ms(own))
        alone_ms = median(stall.encoding_ms() for _ in range(asked.rounds))
        step, batch = stall.kernels()
    print(f"{device.name}, size {asked.size}, {ROWS} rows, {AUDIOS} audios of {LONGEST_S:g} s encoded")
    print(f"  encoding alone           {alone_ms:6.1f} ms (n = {asked.rounds})")
    print(f"  kernels: {step} of a step, {batch} of the batch that is encoded")
    for own, name in ((False, "decoder's thread"), (True, "thread of its own")):
        usual, longest = median(map(median, found[own])), [max(one) for one in found[own]]
        print(
            f"  encoder in {name:18} usual step {usual:5.1f} ms, longest {median(longest):5.1f} ms "
            f"({min(longest):.1f} to {max(longest):.1f}, n = {len(longest)})"
        )
    ratios = [max(after) / max(before) for before, after in zip(found[False], found[True], strict=True)]
    print(f"  longest, own thread over decoder's: x {median(ratios):.2f} (median of ratios within a round)")


if __name__ == "__main__":
    main()
