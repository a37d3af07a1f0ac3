"""How a route asks the engine: a request with an id, pieces of a response, and a client that may leave."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request as HttpRequest

from sample_engine.config.settings import Settings
from sample_engine.models.asr_sizes import SAMPLE_RATE_HZ
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.observe.vocabulary import COORDINATOR
from sample_engine.scheduling.request import Request
from sample_engine.server.client import EngineClient
from sample_engine.server.problems import ClientGone, Problem

Value = TypeVar("Value")
MODELS = {"tts": "sample-tts", "asr": "sample-asr"}


@dataclass(frozen=True, slots=True)
class Front:
    """What all routes share. `settings` are those of the start: what needs a restart is read from them."""

    client: EngineClient
    metrics: Metrics
    events: EventLog
    settings: Settings

    @property
    def model(self) -> str:
        return MODELS[self.settings.pipeline]

    def check_model(self, name: str) -> None:
        """Load tools often send the one they know; empty is this server's."""
        if name not in ("", self.model):
            raise Problem(
                404, f"no model is called {name!r}: this server has {self.model!r}", "model_not_found"
            )

    async def ask(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Pieces of the response; raises NotDone."""
        self.events.record(request.request_id, COORDINATOR, "request_admission", **_length(request))
        async for data in self.client.pieces(request):
            self.events.record(request.request_id, COORDINATOR, "coordinator_stream_received")
            yield data
        self.events.record(request.request_id, COORDINATOR, "terminal_response")


def _length(request: Request) -> dict[str, float]:
    """How long the input is: seconds of audio, else characters."""
    if request.samples is not None:
        return {"audio_seconds": len(request.samples) / SAMPLE_RATE_HZ}
    return {"text_length": len(request.text)}


def new_id() -> str:
    return uuid.uuid4().hex


def now_ns() -> int:
    return time.perf_counter_ns()


async def unless_gone(http: HttpRequest, work: Coroutine[Any, Any, Value]) -> Value:
    """What the work gives; if the client leaves first, the work is cancelled and ClientGone raised."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(http))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def first_of(pieces: AsyncGenerator[bytes, None]) -> bytes | None:
    """None if there is not even one."""
    return await anext(pieces, None)


async def chained(*starts: bytes | None, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What has come already, then the rest."""
    for one in starts:
        if one is not None:
            yield one
    async for piece in rest:
        yield piece


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([one async for one in pieces])


async def _gone(http: HttpRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass
