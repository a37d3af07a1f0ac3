"""What graphs and exact-length batches are worth to the engine's vocoder, on the emulated device.

python -m benchmarks.engine_vocoder [--size small] [--rounds 100] [--realtime]

First table: one chunk of T frames, from codes on the device to samples on the host, launched kernel by kernel
and replayed. Second table: chunks of 5 frames of 1 and of 16 streams that wait at once, one by one and in
batches of exactly equal length. A round takes every T (or number of streams) both ways, in turn; the ratio is
the median of the ratios of rounds, with the 10th and 90th percentile. A pair counts if neither process was
preempted in it; --realtime (needs the right to) lets both go first. Then the claims, as held or not; the exit
code is 1 if one does not hold.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.engine_device import FEW_ROUNDS, PAUSE_S, go_first, preemptions
from sample_engine.config.resolve import resolve
from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.sizes import CODEBOOKS
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.handoff import hand_off
from sample_engine.stages.payloads import CodeChunk
from sample_engine.stages.stage import execute
from sample_engine.stages.vocoder import ChunkShape, VocoderStage

LENGTHS = (1, 4, 5, 8, 13, 25, 100)
STREAMS = (1, 16)
CHUNK_FRAMES = 5
BUDGET_BYTES = 1 << 30
WARM_UPS = 3
AT_LEAST_MS = 25.0
"""A wait naps for tens of microseconds, which is much of one run."""
GAIN_AT_FIVE = 1.8
NEUTRAL = 0.03
"""What must be shown: replay over eager at T = 5; batching at one stream changes nothing."""
NORMAL_95 = 1.96

Run = Callable[[], None]


@dataclass(slots=True)
class Pairs:
    """Times of two ways to do the same, in ms."""

    plain_ms: list[float] = field(default_factory=list)
    better_ms: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [plain / better for plain, better in zip(self.plain_ms, self.better_ms, strict=True)]

    @property
    def gain(self) -> float:
        return statistics.median(self.ratios)

    def interval(self) -> tuple[float, float]:
        """Of the median ratio, 95 %, by ranks."""
        ordered, half = sorted(self.ratios), NORMAL_95 * len(self.ratios) ** 0.5 / 2
        middle = len(ordered) / 2
        return ordered[max(0, int(middle - half))], ordered[min(len(ordered) - 1, int(middle + half))]


class Bench:
    """A stage with a slot for every stream."""

    def __init__(self, device: EmulatedDevice, metrics: Metrics, size: str) -> None:
        settings = resolve(options={"size": size, "preset": "baseline"}).settings
        self.device = device
        self.stage = VocoderStage(device, device.streams[1], settings, metrics)
        self.stage.exact_length = True
        self.stage.capture(dict.fromkeys(LENGTHS, 1), 1.0, BUDGET_BYTES)
        self.slots = [self.stage.open() for _ in range(max(STREAMS))]
        for slot in self.slots:
            self.stage.advance(slot)

    def kernels(self, frames: int) -> int:
        """Of one step of one chunk."""
        before = self.device.counters().kernels
        self.run(self.chunks(1, frames), graph=False, exact=False)()
        return self.device.counters().kernels - before

    def chunks(self, streams: int, frames: int) -> list[CodeChunk]:
        stream, random = self.device.streams[1], np.random.default_rng(frames)
        chunks = []
        for slot in self.slots[:streams]:
            codes = self.device.pinned((frames, CODEBOOKS), INT64)
            codes.array[...] = random.integers(0, self.stage.size.code_ids, codes.array.shape)
            buffer = stream.empty(codes.array.shape, INT64)
            stream.copy_in(buffer, codes)
            chunks.append(CodeChunk(slot, hand_off(self.device, stream, buffer, 0, 1), frames))
        return chunks

    def run(self, chunks: Sequence[CodeChunk], *, graph: bool, exact: bool) -> Run:
        def step() -> None:
            self.stage.graphs.enabled, self.stage.exact_length = graph, exact
            execute(self.stage, chunks)

        return step


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the vocoder of the engine.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--realtime", action="store_true", help="run ahead of all other processes")
    asked = parser.parse_args()
    with (
        EmulatedDevice(BUDGET_BYTES, core=max(os.sched_getaffinity(0))) as device,
        Metrics() as metrics,
    ):
        bench = Bench(device, metrics, asked.size)
        if asked.realtime:
            go_first(device)
        print(f"{device.name}, vocoder {asked.size}, {asked.rounds} rounds")
        held = report_graphs(bench, asked.rounds) & report_batches(bench, asked.rounds)
    sys.exit(0 if held else 1)


def report_graphs(bench: Bench, rounds: int) -> bool:
    """The table by length, and its claims."""
    cases = {}
    for frames in LENGTHS:
        chunks = bench.chunks(1, frames)
        ways = [bench.run(chunks, graph=graph, exact=False) for graph in (False, True)]
        cases[frames] = (ways[0], ways[1])
    found = measured(bench.device, cases, rounds)
    print("frames kernels   n  eager ms  replay ms  eager / replay")
    for frames, pairs in found.items():
        print(f"{frames:6}{bench.kernels(frames):8}{numbers(pairs)}")
    gains = {frames: pairs.gain for frames, pairs in found.items()}
    replayed = all(bench.stage.graphs.coverage.replays[ChunkShape(1, frames)] for frames in LENGTHS)
    return say(
        {
            "every length was replayed": replayed,
            f"a replay is {GAIN_AT_FIVE} times as fast at T = 5": gains[5] >= GAIN_AT_FIVE,
            "the gain shrinks from T = 5 to 25 to 100": gains[5] > gains[25] > gains[100],
        }
    )


def report_batches(bench: Bench, rounds: int) -> bool:
    """The table by streams, with and without graphs, and its claims."""
    claims = {}
    print("streams          n single ms   batch ms  single / batch")
    for graph in (False, True):
        cases = {}
        for streams in STREAMS:
            chunks = bench.chunks(streams, CHUNK_FRAMES)
            ways = [bench.run(chunks, graph=graph, exact=exact) for exact in (False, True)]
            cases[streams] = (ways[0], ways[1])
        found, name = measured(bench.device, cases, rounds), "replay" if graph else "eager"
        for streams, pairs in found.items():
            print(f"{streams:6}{name:>8}{numbers(pairs)}")
        low, high = found[1].interval()
        claims[f"{name}: at 16 streams throughput is up"] = found[16].gain > 1
        claims[f"{name}: at 1 stream nothing changes ({low:.3f} to {high:.3f}, 95 %)"] = (
            low >= 1 - NEUTRAL and high <= 1 + NEUTRAL
        )
    return say(claims)


def measured(device: EmulatedDevice, cases: dict[int, tuple[Run, Run]], rounds: int) -> dict[int, Pairs]:
    """Rounds over all cases, both ways in turn, the first one alternating."""
    found = {case: Pairs() for case in cases}
    for ways in cases.values():
        for way in ways * WARM_UPS:
            way()
    for number in range(rounds):
        for case, ways in cases.items():
            pair = undisturbed(device, ways, number % 2)
            if pair is not None:
                found[case].plain_ms.append(pair[0])
                found[case].better_ms.append(pair[1])
    if few := [case for case, pairs in found.items() if len(pairs.ratios) < FEW_ROUNDS]:
        sys.exit(f"fewer than {FEW_ROUNDS} rounds of {few}: the machine is too busy, nothing can be said")
    return found


def undisturbed(device: EmulatedDevice, ways: tuple[Run, Run], first: int) -> tuple[float, float] | None:
    """Times of both in ms, each after an uncounted run of its own (the pause has let the device doze); None
    where one of the two processes was preempted.
    """
    time.sleep(PAUSE_S)
    pids = ("self", str(device.process_id))
    before = [preemptions(pid) for pid in pids]
    times = {which: timed_ms(ways[which]) for which in (first, 1 - first)}
    return (times[0], times[1]) if before == [preemptions(pid) for pid in pids] else None


def timed_ms(way: Run) -> float:
    """Of one run, the mean of as many as take AT_LEAST_MS together."""
    way()
    begun, runs, took_ms = time.perf_counter_ns(), 0, 0.0
    while took_ms < AT_LEAST_MS:
        way()
        runs += 1
        took_ms = (time.perf_counter_ns() - begun) / 1e6
    return took_ms / runs


def numbers(pairs: Pairs) -> str:
    """The last columns of a row."""
    deciles = statistics.quantiles(pairs.ratios, n=10)
    plain, better = statistics.median(pairs.plain_ms), statistics.median(pairs.better_ms)
    spread = f"{deciles[0]:.2f} to {deciles[8]:.2f}"
    return f"{len(pairs.ratios):4}{plain:10.2f}{better:11.2f}{pairs.gain:7.2f} ({spread})"


def say(claims: dict[str, bool]) -> bool:
    """Print the claims; whether all hold."""
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'DOES NOT HOLD':14}{claim}")
    return all(claims.values())


if __name__ == "__main__":
    main()
