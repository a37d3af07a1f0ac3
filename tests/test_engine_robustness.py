"""Hundreds of requests of every kind at once: each gets one answer, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from typing import Any

import aiohttp

from tests.engine_servers import LONG_S, SPEECH, Server, serving

REQUESTS = 300
CONCURRENT = 48
MALFORMED = (b"", b"{", b"[]", b'{"input": 1}', b'{"input": "a", "response_format": "x"}', b"\xff\xfe")


class Crowd:
    """Clients with odd habits; `outcomes` counts what each of them saw."""

    def __init__(self, server: Server, seed: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self.audio: dict[str, set[bytes]] = {}
        self._url = f"http://127.0.0.1:{server.port}"
        self._random = random.Random(seed)

    def run(self, requests: int) -> None:
        asyncio.run(asyncio.wait_for(self._all(requests), LONG_S))

    async def _all(self, requests: int) -> None:
        gate = asyncio.Semaphore(CONCURRENT)
        async with aiohttp.ClientSession(self._url) as session:
            await asyncio.gather(*(self._one(session, gate) for _ in range(requests)))

    async def _one(self, session: aiohttp.ClientSession, gate: asyncio.Semaphore) -> None:
        habits = (self._patient, self._patient, self._impatient, self._leaves_a_stream, self._malformed)
        async with gate:
            try:
                self.outcomes[await self._random.choice(habits)(session)] += 1
            except aiohttp.ClientError as error:
                self.outcomes[type(error).__name__] += 1

    async def _patient(self, session: aiohttp.ClientSession) -> str:
        body = self._body()
        async with session.post(SPEECH, json=body) as response:
            data = await response.read()
        if response.status == 200:
            self.audio.setdefault(body["input"], set()).add(data)
        return str(response.status)

    async def _impatient(self, session: aiohttp.ClientSession) -> str:
        """Leaves after a while, whatever has come by then."""
        patience_s = self._random.uniform(0, 0.1)
        try:
            async with asyncio.timeout(patience_s), session.post(SPEECH, json=self._body()) as response:
                await response.read()
        except TimeoutError:
            return "left"
        return str(response.status)

    async def _leaves_a_stream(self, session: aiohttp.ClientSession) -> str:
        """After the first piece."""
        async with session.post(SPEECH, json={**self._body(), "stream": True}) as response:
            await response.content.readany()
            response.close()
        return "left" if response.status == 200 else str(response.status)

    async def _malformed(self, session: aiohttp.ClientSession) -> str:
        headers = {"Content-Type": "application/json"}
        async with session.post(SPEECH, data=self._random.choice(MALFORMED), headers=headers) as response:
            await response.read()
        return f"malformed {response.status}"

    def _body(self) -> dict[str, Any]:
        words = self._random.randrange(1, 10)
        return {"input": " ".join(f"w{words}{index}" for index in range(words)), "response_format": "pcm"}


def settle(server: Server) -> None:
    """Wait until nothing is on its way: then settings can be changed."""
    for _ in range(1000):
        if server.post("/configure", {}).status == 200:
            return
    raise AssertionError("the server never came to rest")


def ended(server: Server) -> dict[str, float]:
    ends = ("done", "rejected", "shed", "cancelled", "failed")
    return {end: server.metric("requests_total", end=end) for end in ends}


def test_a_crowd_leaves_nothing_behind() -> None:
    with serving("--set", "vocoder_queue=4") as server:
        assert server.speak().status == 200
        settle(server)
        server.wait_for("device_used_bytes", 1)
        idle_bytes = server.metric("device_used_bytes")
        for seed in range(2):
            crowd = Crowd(server, seed)
            crowd.run(REQUESTS)
            settle(server)
            assert crowd.outcomes.total() == REQUESTS
            assert set(crowd.outcomes) <= {"200", "400", "503", "left", "malformed 400"}
            assert crowd.outcomes["200"] > 0
            assert all(len(versions) == 1 for versions in crowd.audio.values())
        gauges = ("running", "waiting", "building")
        assert [server.metric(f"requests_{one}") for one in gauges] == [0, 0, 0]
        assert ended(server)["failed"] == 0
        assert server.speak().status == 200
        server.wait_for("device_used_bytes", idle_bytes)
        assert server.metric("device_used_bytes") == idle_bytes
        assert server.get("/server_info").json["in_flight"] == 0


def test_a_device_that_is_killed_under_load_leaves_nobody_waiting() -> None:
    with serving() as server:
        crowd = Crowd(server, seed=1)

        async def kill_soon() -> None:
            await asyncio.sleep(0.3)
            os.kill(server.processes["device"], signal.SIGKILL)

        async def both() -> None:
            await asyncio.gather(crowd._all(REQUESTS), kill_soon())

        asyncio.run(asyncio.wait_for(both(), LONG_S))
        assert crowd.outcomes.total() == REQUESTS
        assert crowd.outcomes["500"] > 0
        assert server.get("/health").status == 503
        assert server.get("/server_info").json["in_flight"] == 0
