"""Ten thousand requests, many of them odd: is none lost, doubled or left hanging, and is nothing left behind?

python -m benchmarks.engine_robustness [--pipeline asr] [--requests 10000]

Size tiny, over HTTP, 48 at a time: patient clients, clients that leave at a random moment or in the middle of
a stream, malformed bodies, texts or audios that are too long, bodies that announce more than is taken. Every
client must see one outcome, of those that a working server has. All answers to one text or audio must be the
same bytes. The engine must have ended every request that it saw. Afterwards no slot (and with it no row of
the KV cache) may be taken, and device memory in use must be what it was at rest.

Then a fresh server, whose device process is killed in the middle of a step while a crowd asks: everyone must
get an answer. And at last its front is killed: nothing may survive. Printed is what was seen, then the
claims, as held or not; the exit code is 1 if one does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.engine_vocoder import say
from tests.engine_crowd import EXPECTED, Asks, Crowd, Listening, Speech, ended
from tests.engine_servers import Server, serving

CROWD = 1000
"""Requests of one seed; the server comes to rest between two crowds."""
HANGS_AFTER_S = 300.0
KILL_AFTER_S = 0.5
LOST_CROWD = 500
AFTER_LOSS = EXPECTED | {"500", "oversize 500", "ServerDisconnectedError", "ClientPayloadError"}
"""A stream whose engine is lost is broken off."""
GAUGES = ("running", "waiting", "building")


OPTIONS: dict[str, tuple[tuple[str, ...], Asks]] = {
    "tts": (("--set", "vocoder_queue=4"), Speech()),
    "asr": (("--pipeline", "asr", "--set", "encoder_queue=4", "--set", "encoder_cache=off"), Listening()),
}
"""Small queues between stages, so that they fill up; no cache, which keeps what it knows."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Send the engine ten thousand odd requests.")
    parser.add_argument("--pipeline", choices=sorted(OPTIONS), default="tts")
    parser.add_argument("--requests", type=int, default=10_000)
    asked = parser.parse_args()
    options, asks = OPTIONS[asked.pipeline]
    with serving(*options) as server:
        held = many(server, asks, asked.requests)
    with serving("--pipeline", asked.pipeline) as server:
        held &= lost_device(server, asks)
    sys.exit(0 if held else 1)


def many(server: Server, asks: Asks, requests: int) -> bool:
    usual = Crowd(server, -1, asks)
    usual.run(CROWD // 10, HANGS_AFTER_S)
    idle_bytes, before, idle_rss = at_rest(server, usual), ended(server), rss_mib(server)
    outcomes, answers, begun_s = Counter[str](), dict[str, set[bytes]](), time.monotonic()
    for seed in range(-(-requests // CROWD)):
        crowd = Crowd(server, seed, asks)
        crowd.run(min(CROWD, requests - seed * CROWD), HANGS_AFTER_S)
        outcomes += crowd.outcomes
        for text, versions in crowd.answers.items():
            answers.setdefault(text, set()).update(versions)
    took_s = time.monotonic() - begun_s
    server.settle()
    ends = {end: int(count - before[end]) for end, count in ended(server).items()}
    used_bytes = at_rest(server, usual)
    print(f"{requests} requests in {took_s:.0f} s, seen by clients: {told(outcomes)}")
    print(f"ended in the engine: {told(ends)}")
    print(f"device memory in use at rest: {idle_bytes:.0f} bytes before, {used_bytes:.0f} after")
    print(f"resident memory, front and engine: {idle_rss} MiB before, {rss_mib(server)} after")
    return say(
        {
            "every client saw one outcome, and one that a working server has": (
                outcomes.total() == requests and set(outcomes) <= EXPECTED
            ),
            "all answers to one thing are the same bytes": all(len(one) == 1 for one in answers.values()),
            "whoever got an answer is a request that was done, and none failed": (
                ends["done"] >= outcomes["200"] > 0 and ends["failed"] == 0
            ),
            "who was refused is counted": ends["shed"] >= outcomes["503"],
            "no slot is taken, nothing waits": not any(server.metric(f"requests_{one}") for one in GAUGES),
            "device memory is back at its idle level": used_bytes == idle_bytes,
        }
    )


def lost_device(server: Server, asks: Asks) -> bool:
    crowd = Crowd(server, 0, asks)

    async def kill_soon() -> None:
        await asyncio.sleep(KILL_AFTER_S)
        os.kill(server.processes["device"], signal.SIGKILL)

    async def both() -> None:
        await asyncio.gather(crowd.all(LOST_CROWD), kill_soon())

    asyncio.run(asyncio.wait_for(both(), HANGS_AFTER_S))
    print(f"device killed under load, {LOST_CROWD} requests: {told(crowd.outcomes)}")
    held = {
        "every client of a killed device saw one outcome": (
            crowd.outcomes.total() == LOST_CROWD and set(crowd.outcomes) <= AFTER_LOSS
        ),
        "some saw an error": crowd.outcomes["500"] > 0,
        "nothing is in flight, and /health says so": (
            server.get("/server_info").json["in_flight"] == 0 and server.get("/health").status == 503
        ),
    }
    server.process.kill()
    server.wait_until_gone()
    held["after SIGKILL of the front nothing survives"] = not server.alive()
    return say(held)


def at_rest(server: Server, usual: Crowd) -> float:
    """Device memory in use when nothing runs, once the gauges show it. The last request is always the same,
    for what a prompt lay in is let go with the next one.
    """
    usual.ask_the_usual()
    server.settle()
    server.wait_for_gauges()
    return server.metric("device_used_bytes")


def rss_mib(server: Server) -> list[int]:
    pids = [server.processes[one] for one in ("front", "engine")]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return [one * os.sysconf("SC_PAGE_SIZE") >> 20 for one in pages]


def told(counts: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
