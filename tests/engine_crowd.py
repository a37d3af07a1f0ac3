"""Clients with odd habits, all at once, over HTTP: what each of them saw, and what the server says of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import aiohttp

from tests.engine_servers import LONG_S, SPEECH, Server

CONCURRENT = 48
JSON = {"Content-Type": "application/json"}
MALFORMED = (b"", b"{", b"[]", b'{"input": 1}', b'{"input": "a", "response_format": "x"}', b"\xff\xfe")
TOO_LONG = ("word " * 400, "x" * 5000, " ")
"""More than the decoder holds, more than the API takes, nothing to say."""
TOO_LARGE_BYTES = 26 << 20
EXPECTED = {"200", "503", "left", "malformed 400", "oversize 400", "oversize 413", "oversize 503"}
"""Outcomes of a server that works."""
ENDS = ("done", "rejected", "shed", "cancelled", "failed")


class Crowd:
    """`outcomes` counts what each client saw; `audio` has all answers to each text."""

    def __init__(self, server: Server, seed: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self.audio: dict[str, set[bytes]] = {}
        self._url = f"http://127.0.0.1:{server.port}"
        self._random = random.Random(seed)

    def run(self, requests: int, limit_s: float = LONG_S) -> None:
        """Raises TimeoutError if anyone still waits after the limit."""
        asyncio.run(asyncio.wait_for(self.all(requests), limit_s))

    async def all(self, requests: int) -> None:
        """So many clients, CONCURRENT at a time."""
        gate = asyncio.Semaphore(CONCURRENT)
        async with aiohttp.ClientSession(self._url) as session:
            await asyncio.gather(*(self._one(session, gate) for _ in range(requests)))

    async def _one(self, session: aiohttp.ClientSession, gate: asyncio.Semaphore) -> None:
        habits = (
            *[self._patient] * 4,
            *[self._impatient] * 2,
            *[self._leaves_a_stream] * 2,
            self._malformed,
            self._oversize,
        )
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
        async with session.post(SPEECH, data=self._random.choice(MALFORMED), headers=JSON) as response:
            await response.read()
        return f"malformed {response.status}"

    async def _oversize(self, session: aiohttp.ClientSession) -> str:
        """A text that is too long, or a body that only says how large it will be."""
        if self._random.random() < 0.2:
            headers = {**JSON, "Content-Length": str(TOO_LARGE_BYTES), "Connection": "close"}
            async with session.post(SPEECH, data=b"{", headers=headers) as response:
                response.close()
            return f"oversize {response.status}"
        async with session.post(SPEECH, json={"input": self._random.choice(TOO_LONG)}) as response:
            await response.read()
        return f"oversize {response.status}"

    def _body(self) -> dict[str, Any]:
        words = self._random.randrange(1, 9)
        return {"input": " ".join(f"w{words}{index}" for index in range(words)), "response_format": "pcm"}


def ended(server: Server) -> dict[str, float]:
    """Requests that the engine saw, by how they ended."""
    return {end: server.metric("requests_total", end=end) for end in ENDS}
