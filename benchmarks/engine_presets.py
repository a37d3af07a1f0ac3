"""All optimisations on against all off, end to end over HTTP, for both pipelines.

python -m benchmarks.engine_presets [--size small] [--rounds 9] [--requests 48] [--concurrency 8]

Two servers of a pipeline, `--preset baseline` and `--preset optimized`, stand side by side; the one that has
nothing to do uses no processor. A round loads each of them with the same requests in a closed loop, in turn
forwards and backwards. The encoder cache is off in both, so that no request is answered from it. Printed are
medians over n rounds, and the speed-up within a round: median, lowest and highest.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

from benchmarks.engine_scheduling import spread
from benchmarks.engine_vocoder import say
from sample_engine.bench.inputs import Ask, asks
from sample_engine.bench.load import OK, Load, Loop
from sample_engine.bench.server import Server, serving
from sample_engine.config.settings import Pipeline

PRESETS = ("baseline", "optimized")
PIPELINES: tuple[Pipeline, ...] = ("tts", "asr")
COLD = "--set=encoder_cache=off"
MS_PER_S = 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the engine's presets end to end.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--concurrency", type=int, default=8)
    asked = parser.parse_args()
    held = [compared(one, asked.size, asked.rounds, asked.requests, asked.concurrency) for one in PIPELINES]
    sys.exit(0 if all(held) else 1)


def compared(pipeline: Pipeline, size: str, count: int, requests: int, clients: int) -> bool:
    common = [f"--pipeline={pipeline}", f"--set=size={size}", COLD]
    with (
        serving([*common, "--preset=baseline"]) as baseline,
        serving([*common, "--preset=optimized"]) as optimized,
    ):
        servers = dict(zip(PRESETS, (baseline, optimized), strict=True))
        device = baseline.info()["device"]
        print(f"{device}, {pipeline} {size}: {requests} requests a load, closed loop of {clients}")
        return report(pipeline, rounds(servers, asks(pipeline, requests), count, clients))


def rounds(servers: dict[str, Server], some: list[Ask], count: int, clients: int) -> dict[str, list[Load]]:
    """The first round warms up."""
    found: dict[str, list[Load]] = {name: [] for name in servers}
    for index in range(count + 1):
        for name in PRESETS if index % 2 else PRESETS[::-1]:
            load = Loop(servers[name].port, some).run(clients)
            if load.count(OK) != len(some):
                sys.exit(f"{name}: {len(some) - load.count(OK)} of {len(some)} requests were not done")
            if index:
                found[name].append(load)
    return found


def report(pipeline: str, found: dict[str, list[Load]]) -> bool:
    for name, loads in found.items():
        speed = median(one.done_per_s for one in loads)
        audio = median(one.audio_s / one.took_s for one in loads)
        latency_ms = median(median(one.latencies_s()) for one in loads) * MS_PER_S
        print(f"  {name:10}{speed:7.1f} requests/s{audio:7.1f} s of audio a second, p50 {latency_ms:.0f} ms")
    pairs = zip(found["optimized"], found["baseline"], strict=True)
    gains = [one.done_per_s / other.done_per_s for one, other in pairs]
    print(f"  optimized over baseline: {spread(gains)}")
    return say({f"{pipeline}: all on is faster than all off": median(gains) > 1})


if __name__ == "__main__":
    main()
