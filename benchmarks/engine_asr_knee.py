"""Where does the asr pipeline stop to gain from more clients, and which limit is it?

python -m benchmarks.engine_asr_knee [--size small] [--rounds 5] [--requests 256]

Two servers, one with the stock limits (32 running, 2 build workers, 16 in the backlog) and one with the
raised ones (64, 8, 32). A round is a closed loop of each number of clients against each server, one after the
other, forwards and backwards in turn. Every request is an audio of its own, 2 to 6 s, and the encoder cache
is off: so every one is encoded. What is refused is dropped, and the client goes on with the next.

Printed are medians over the rounds: requests done a second, latency, and of the stage-event files the mean
time in each part of the pipeline; and of requests refused the sum. Then medians of ratios within a round.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from benchmarks.closed_loop import OK, SHED, Pass, Server, served, transcriptions
from benchmarks.made_up_audio import wav
from benchmarks.stage_events import INTERVALS, mean_ms

CLIENTS = (8, 16, 32, 64)
LIMITS = ("stock", "raised")
COMMON = ("--pipeline", "asr", "--set", "encoder_cache=off")
MS_PER_S = 1e3
WARM_UP_REQUESTS = 64
BUSY = "engine_device_busy_seconds_total"
SHOWN_S = 0.5
"""Longer than the server takes to bring its gauges up to date."""

Case = tuple[str, int]
"""Limits, and how many clients."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One load. `busy`: share of the time in which the device ran kernels or copies."""

    load: Pass
    parts_ms: dict[str, float]
    busy: float


Found = dict[Case, list[Measured]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the knee of the asr pipeline.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=256)
    asked = parser.parse_args()
    wavs = [wav(number) for number in range(asked.requests)]
    size = ("--set", f"size={asked.size}")
    with (
        served(*COMMON, *size, "--limits", "stock") as stock,
        served(*COMMON, *size, "--limits", "raised") as raised,
    ):
        servers = dict(zip(LIMITS, (stock, raised), strict=True))
        print(f"{stock.info()['device']}, size {asked.size}, {asked.requests} requests a load")
        found = rounds(servers, wavs, asked.rounds)
    report(found)
    report_ratios(found)
    sys.exit(0 if texts_agree(found) else 1)


def rounds(servers: dict[str, Server], wavs: list[bytes], count: int) -> Found:
    cases = [(limits, clients) for clients in CLIENTS for limits in LIMITS]
    for server in servers.values():
        transcriptions(server, wavs[:WARM_UP_REQUESTS], CLIENTS[0])
    found: Found = defaultdict(list)
    for index in range(count):
        for limits, clients in cases if index % 2 else cases[::-1]:
            found[limits, clients].append(measured(servers[limits], wavs, clients))
    return found


def measured(server: Server, wavs: list[bytes], clients: int) -> Measured:
    with tempfile.TemporaryDirectory() as directory:
        server.post("/start_request_profile", event_dir=directory)
        busy_s = server.metric(BUSY)
        load = transcriptions(server, wavs, clients)
        time.sleep(SHOWN_S)
        busy_s = server.metric(BUSY) - busy_s
        files = server.post("/stop_request_profile")["event_files"]
        parts_ms = mean_ms(files)
    if odd := {one.status for one in load.answers} - {OK, SHED}:
        sys.exit(f"answers of status {odd}")
    return Measured(load, parts_ms, busy_s / load.took_s)


def report(found: Found) -> None:
    print(
        f"{'limits':8}{'clients':>8}{'done/s':>8}{'mean ms':>9}{'p95 ms':>8}{'refused':>9}{'busy':>6}", end=""
    )
    print("".join(f"{name:>9}" for name in INTERVALS), "  (mean ms each)")
    for (limits, clients), passes in sorted(found.items(), key=lambda one: (one[0][0] == "raised", one[0])):
        loads = [one.load for one in passes]
        mean = median(fmean(one.latencies_s()) for one in loads) * MS_PER_S
        p95 = median(quantiles(one.latencies_s(), n=20)[-1] for one in loads) * MS_PER_S
        refused = sum(one.count(SHED) for one in loads)
        speed, busy = median(one.done_per_s for one in loads), median(one.busy for one in passes)
        print(f"{limits:8}{clients:8}{speed:8.1f}{mean:9.0f}{p95:8.0f}{refused:9}{busy:6.0%}", end="")
        print("".join(f"{median(one.parts_ms[name] for one in passes):9.1f}" for name in INTERVALS))


def report_ratios(found: Found) -> None:
    """64 clients over 32, round by round."""
    print("64 clients over 32, medians of ratios within a round")
    for limits in LIMITS:
        pairs = list(zip(found[limits, 64], found[limits, 32], strict=True))
        speeds = [high.load.done_per_s / low.load.done_per_s for high, low in pairs]
        waits = [high.parts_ms["queue"] / low.parts_ms["queue"] for high, low in pairs]
        print(f"  {limits:8} done a second {spread(speeds)}   queue wait {spread(waits)}")
    pairs = list(zip(found["raised", 64], found["stock", 64], strict=True))
    speeds = [high.load.done_per_s / low.load.done_per_s for high, low in pairs]
    print(f"raised over stock at 64 clients: done a second {spread(speeds)}")


def spread(ratios: list[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})"


def texts_agree(found: Found) -> bool:
    """Whether all loads that served everything gave the same texts."""
    whole = [one.load for passes in found.values() for one in passes if not one.load.count(SHED)]
    same = len({tuple(sorted(answer.text for answer in load.answers)) for load in whole}) <= 1
    print(f"the same texts in all {len(whole)} loads without refusals: {'yes' if same else 'NO'}")
    return same


if __name__ == "__main__":
    main()
