"""Hundreds of requests of every kind at once: each gets one answer, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from tests.engine_crowd import EXPECTED, Asks, Crowd, Listening, Speech, ended
from tests.engine_servers import LONG_S, serving

REQUESTS = 300
CROWDED = 30
"""So many once, and all that is made when it is first needed is there."""
ASR = ("--pipeline", "asr", "--set", "encoder_queue=4", "--set", "encoder_cache=off")


@pytest.mark.parametrize(
    ("options", "asks"), [(("--set", "vocoder_queue=4"), Speech()), (ASR, Listening())], ids=["tts", "asr"]
)
def test_a_crowd_leaves_nothing_behind(options: tuple[str, ...], asks: Asks) -> None:
    with serving(*options) as server:
        usual = Crowd(server, -1, asks)
        usual.run(CROWDED)
        assert usual.ask_the_usual() == "200"
        server.settle()
        server.wait_for_gauges()
        idle_bytes = server.metric("device_used_bytes")
        for seed in range(2):
            crowd = Crowd(server, seed, asks)
            crowd.run(REQUESTS)
            server.settle()
            assert crowd.outcomes.total() == REQUESTS
            assert set(crowd.outcomes) <= EXPECTED
            assert crowd.outcomes["200"] > 0
            assert all(len(versions) == 1 for versions in crowd.answers.values())
        gauges = ("running", "waiting", "building")
        assert [server.metric(f"requests_{one}") for one in gauges] == [0, 0, 0]
        assert ended(server)["failed"] == 0
        assert usual.ask_the_usual() == "200"
        server.wait_until_is("device_used_bytes", idle_bytes)
        assert server.get("/server_info").json["in_flight"] == 0


def test_a_device_that_is_killed_under_load_leaves_nobody_waiting() -> None:
    with serving() as server:
        crowd = Crowd(server, seed=1)

        async def kill_soon() -> None:
            await asyncio.sleep(0.3)
            os.kill(server.processes["device"], signal.SIGKILL)

        async def both() -> None:
            await asyncio.gather(crowd.all(REQUESTS), kill_soon())

        asyncio.run(asyncio.wait_for(both(), LONG_S))
        assert crowd.outcomes.total() == REQUESTS
        assert crowd.outcomes["500"] > 0
        assert server.get("/health").status == 503
        assert server.get("/server_info").json["in_flight"] == 0
