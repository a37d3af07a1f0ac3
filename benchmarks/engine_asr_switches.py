"""What do the encoder's switches and continuous batching change in the asr pipeline?

python -m benchmarks.engine_asr_switches [--size small] [--rounds 7] [--clients 16]

One engine inside this process, without HTTP, and so many clients in a closed loop. A round runs every arm of
every pair, forwards and backwards in turn; between arms the engine is reconfigured. Every client's audios are
new to the engine, but in the pair `encoder_cache`, where all ask for the same few. The first round warms up.
With *little prefill* one chunk of it lies between two steps instead of eight, and disturbs the running batch
less than the encoder does.

A *gap* is the time between two tokens of one request; of each request the longest one counts. Printed are
medians over the rounds, and medians of ratios within a round.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles

import numpy as np
import numpy.typing as npt

from benchmarks.made_up_audio import samples
from sample_engine.config.resolve import resolve
from sample_engine.engine import Engine
from sample_engine.observe.metrics import Metrics
from sample_engine.pipelines import make_pipeline
from sample_engine.scheduling.request import Ending, Piece, Request

LONG_S, SHORT_S = (2.0, 6.0), (0.5, 1.0)
FEW_AUDIOS = 8
REQUESTS_A_CLIENT = 8
MS_PER_S = 1e3
NAP_S = 1e-3
Audio = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two settings of one thing. `audios`: how many different ones; 0: all of them."""

    name: str
    first: Mapping[str, object]
    second: Mapping[str, object]
    lengths_s: tuple[float, float] = LONG_S
    audios: int = 0

    @property
    def arms(self) -> tuple[Mapping[str, object], Mapping[str, object]]:
        return self.first, self.second


COLD = {"encoder_cache": False}
LITTLE_PREFILL = {**COLD, "prefill_chunks": 1}
STATIC, CONTINUOUS = {**COLD, "batching": "static"}, {**COLD, "batching": "continuous"}
PAIRS = (
    Pair("encoder_thread", {**COLD, "encoder_thread": False}, {**COLD, "encoder_thread": True}),
    Pair(
        "encoder_thread, little prefill",
        {**LITTLE_PREFILL, "encoder_thread": False},
        {**LITTLE_PREFILL, "encoder_thread": True},
    ),
    Pair("encoder_cache", COLD, {"encoder_cache": True}, audios=FEW_AUDIOS),
    Pair("batching, 2 to 6 s", STATIC, CONTINUOUS),
    Pair("batching, 0.5 to 1 s", STATIC, CONTINUOUS, SHORT_S),
)
USUAL = {"encoder_thread": True, "encoder_cache": False, "batching": "continuous", "prefill_chunks": 8}


@dataclass(slots=True, eq=False)
class Asked:
    """A request on its way."""

    started_s: float
    pieces_s: list[float] = field(default_factory=list)

    @property
    def longest_gap_s(self) -> float:
        return max((after - before for before, after in itertools.pairwise(self.pieces_s)), default=0.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """One arm in one round."""

    done_per_s: float
    latency_ms: float
    gap_ms: float
    p95_gap_ms: float
    hits: float


class Loop:
    """A closed loop of clients inside the process."""

    def __init__(self, size: str) -> None:
        self.metrics = Metrics()
        options = {"pipeline": "asr", "size": size, "limits": "raised", **USUAL}
        self.engine = Engine(resolve(options=options), self.metrics, self._hear, make_pipeline)
        self._changed = threading.Condition()
        self._asked: dict[str, Asked] = {}
        self._ended: dict[str, float] = {}
        self._numbers = itertools.count()
        self._left: list[Audio] = []

    def run(self, audios: Sequence[Audio], clients: int) -> Measured:
        self._asked.clear()
        self._ended.clear()
        hits = self.metrics.get("engine_encoder_cache_total", "hit")
        self._left = list(audios)
        started_s = time.perf_counter()
        for _ in range(clients):
            self._next()
        with self._changed:
            self._changed.wait_for(lambda: len(self._ended) == len(audios))
        took_s = time.perf_counter() - started_s
        gaps = [one.longest_gap_s * MS_PER_S for one in self._asked.values()]
        return Measured(
            done_per_s=len(audios) / took_s,
            latency_ms=fmean(self._ended[name] - one.started_s for name, one in self._asked.items())
            * MS_PER_S,
            gap_ms=median(gaps),
            p95_gap_ms=quantiles(gaps, n=20)[-1],
            hits=(self.metrics.get("engine_encoder_cache_total", "hit") - hits) / len(audios),
        )

    def configure(self, changes: Mapping[str, object]) -> None:
        while not self.engine.is_idle:
            time.sleep(NAP_S)
        self.engine.configure({**USUAL, **changes})

    def _next(self) -> None:
        with self._changed:
            if not self._left:
                return
            audio, name = self._left.pop(), str(next(self._numbers))
            self._asked[name] = Asked(time.perf_counter())
        self.engine.submit(Request(name, "transcription", samples=audio))

    def _hear(self, message: Piece | Ending) -> None:
        now_s = time.perf_counter()
        if isinstance(message, Piece):
            self._asked[message.request_id].pieces_s.append(now_s)
            return
        if message.end != "done":
            sys.exit(f"a request ended as {message.end}: {message.reason}")
        self._next()
        with self._changed:
            self._ended[message.request_id] = now_s
            self._changed.notify_all()


Found = dict[str, list[tuple[Measured, Measured]]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Switch parts of the asr pipeline on and off.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clients", type=int, default=16)
    asked = parser.parse_args()
    loop = Loop(asked.size)
    count = asked.clients * REQUESTS_A_CLIENT
    print(f"{loop.engine.device.name}, size {asked.size}, {asked.clients} clients, {count} requests an arm")
    found: Found = defaultdict(list)
    for index in range(asked.rounds + 1):  # the first one warms up
        for pair in PAIRS:
            measured = both(loop, pair, asked.clients, backwards=bool(index % 2))
            if index:
                found[pair.name].append(measured)
    loop.engine.close()
    report(found)


def both(loop: Loop, pair: Pair, clients: int, *, backwards: bool) -> tuple[Measured, Measured]:
    """Both arms of a pair, on the same audios."""
    count = clients * REQUESTS_A_CLIENT
    kinds = [samples(number, *pair.lengths_s) for number in range(pair.audios or count)]
    audios = [kinds[number % len(kinds)] for number in range(count)]
    results: dict[int, Measured] = {}
    for place in (1, 0) if backwards else (0, 1):
        loop.configure(pair.arms[place])
        results[place] = loop.run(audios, clients)
    return results[0], results[1]


def report(found: Found) -> None:
    print("medians, first arm and second arm; ratios are second over first: median (lowest to highest)")
    for pair in PAIRS:
        first, second = zip(*found[pair.name], strict=True)
        print(f"{pair.name}: {told(pair.first)} | {told(pair.second)}")
        for name in ("done_per_s", "latency_ms", "gap_ms", "p95_gap_ms"):
            values = [[getattr(one, name) for one in arm] for arm in (first, second)]
            ratios = [after / before for before, after in zip(*values, strict=True)]
            print(
                f"  {name:12}{median(values[0]):8.1f}{median(values[1]):8.1f}   "
                f"x {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})"
            )
        print(
            f"  cache hits  {median(one.hits for one in first):8.0%}{median(one.hits for one in second):8.0%}"
        )


def told(arm: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in arm.items())


if __name__ == "__main__":
    main()
