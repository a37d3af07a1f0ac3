"""Clients with odd habits, all at once, over HTTP: what each of them saw, and what the server says of it."""

from __future__ import annotations

import asyncio
import io
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import aiohttp
import numpy as np

from sample_engine.server.wav import wav_header
from tests.engine_servers import LONG_S, SPEECH, Server

CONCURRENT = 48
RATE_HZ = 16_000
JSON = {"Content-Type": "application/json"}
TRANSCRIPTIONS = "/v1/audio/transcriptions"
TOO_LARGE_BYTES = 26 << 20
EXPECTED = {"200", "503", "left", "malformed 400", "oversize 400", "oversize 413", "oversize 503"}
"""Outcomes of a server that works."""
ENDS = ("done", "rejected", "shed", "cancelled", "failed")
Post = dict[str, Any]
"""What a request is posted with."""


class Asks(Protocol):
    """What a crowd asks of one pipeline. `asked`: something sensible, and a name for it."""

    @property
    def url(self) -> str: ...
    @property
    def malformed(self) -> Sequence[Callable[[], Post]]: ...
    @property
    def too_long(self) -> Sequence[Callable[[], Post]]: ...

    def asked(self, number: int, *, stream: bool) -> tuple[str, Post]: ...


class Speech:
    """Texts of 1 to 8 words."""

    url = SPEECH
    malformed: Sequence[Callable[[], Post]] = tuple(
        partial(dict, data=data, headers=JSON)
        for data in (
            b"",
            b"{",
            b"[]",
            b'{"input": 1}',
            b'{"input": "a", "response_format": "x"}',
            b"\xff\xfe",
        )
    )
    too_long: Sequence[Callable[[], Post]] = tuple(
        partial(dict, json={"input": text}) for text in ("word " * 400, "x" * 5000, " ")
    )
    """More than the decoder holds, more than the API takes, nothing to say."""

    def asked(self, number: int, *, stream: bool) -> tuple[str, Post]:
        words = 1 + number % 8
        text = " ".join(f"w{words}{index}" for index in range(words))
        return text, {"json": {"input": text, "response_format": "pcm", "stream": stream}}


class Listening:
    """Audios of a tenth of a second to 0.8 s."""

    url = TRANSCRIPTIONS

    def __init__(self) -> None:
        self._files = [audio_file(number, seconds=0.1 * (1 + number)) for number in range(8)]
        cut, none, long = self._files[0][:30], audio_file(0, seconds=0), audio_file(0, seconds=200)
        self.malformed: Sequence[Callable[[], Post]] = (
            *(partial(form, data) for data in (b"", b"RIFF", cut, none)),
            partial(form, self._files[0], response_format="srt"),
            partial(dict, data=b"{}", headers=JSON),
        )
        self.too_long: Sequence[Callable[[], Post]] = (partial(form, long),)

    def asked(self, number: int, *, stream: bool) -> tuple[str, Post]:
        number %= len(self._files)
        return str(number), form(
            self._files[number], response_format="json", stream="true" if stream else "false"
        )


def audio_file(number: int, seconds: float) -> bytes:
    """Noise, another one for each number."""
    noise = np.random.default_rng(number).integers(-9000, 9000, int(RATE_HZ * seconds), np.int16)
    return wav_header(RATE_HZ, 2 * len(noise)) + noise.tobytes()


def form(data: bytes, **fields: str) -> Post:
    made = aiohttp.FormData(fields)
    made.add_field("file", io.BytesIO(data), filename="a.wav")
    return {"data": made}


class Crowd:
    """`outcomes` counts what each client saw; `answers` has all answers to each thing that was asked."""

    def __init__(self, server: Server, seed: int, asks: Asks | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.answers: dict[str, set[bytes]] = {}
        self._asks = asks or Speech()
        self._base = f"http://127.0.0.1:{server.port}"
        self._random = random.Random(seed)

    def run(self, requests: int, limit_s: float = LONG_S) -> None:
        """Raises TimeoutError if anyone still waits after the limit."""
        asyncio.run(asyncio.wait_for(self.all(requests), limit_s))

    async def all(self, requests: int) -> None:
        """So many clients, CONCURRENT at a time."""
        gate = asyncio.Semaphore(CONCURRENT)
        async with aiohttp.ClientSession(self._base) as session:
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

    def ask_the_usual(self) -> str:
        """The same request each time, alone and patiently; what its client saw."""

        async def ask() -> str:
            async with aiohttp.ClientSession(self._base) as session:
                return await self._asking(session, *self._asks.asked(0, stream=False))

        return asyncio.run(ask())

    async def _patient(self, session: aiohttp.ClientSession) -> str:
        return await self._asking(session, *self._asked())

    async def _asking(self, session: aiohttp.ClientSession, name: str, post: Post) -> str:
        async with session.post(self._asks.url, **post) as response:
            data = await response.read()
        if response.status == 200:
            self.answers.setdefault(name, set()).add(data)
        return str(response.status)

    async def _impatient(self, session: aiohttp.ClientSession) -> str:
        """Leaves after a while, whatever has come by then."""
        patience_s, (_, post) = self._random.uniform(0, 0.1), self._asked()
        try:
            async with asyncio.timeout(patience_s), session.post(self._asks.url, **post) as response:
                await response.read()
        except TimeoutError:
            return "left"
        return str(response.status)

    async def _leaves_a_stream(self, session: aiohttp.ClientSession) -> str:
        """After the first piece."""
        _, post = self._asked(stream=True)
        async with session.post(self._asks.url, **post) as response:
            await response.content.readany()
            response.close()
        return "left" if response.status == 200 else str(response.status)

    async def _malformed(self, session: aiohttp.ClientSession) -> str:
        post = self._random.choice(self._asks.malformed)()
        async with session.post(self._asks.url, **post) as response:
            await response.read()
        return f"malformed {response.status}"

    async def _oversize(self, session: aiohttp.ClientSession) -> str:
        """Something too long, or a body that only says how large it will be."""
        if self._random.random() < 0.2:
            headers = {**JSON, "Content-Length": str(TOO_LARGE_BYTES), "Connection": "close"}
            async with session.post(self._asks.url, data=b"{", headers=headers) as response:
                response.close()
            return f"oversize {response.status}"
        post = self._random.choice(self._asks.too_long)()
        async with session.post(self._asks.url, **post) as response:
            await response.read()
        return f"oversize {response.status}"

    def _asked(self, *, stream: bool = False) -> tuple[str, Post]:
        return self._asks.asked(self._random.randrange(1 << 30), stream=stream)


def ended(server: Server) -> dict[str, float]:
    """Requests that the engine saw, by how they ended."""
    return {end: server.metric("requests_total", end=end) for end in ENDS}
