"""The front's end of the control channel: every HTTP request waits here for its pieces.

One task reads the channel and deals messages out by request id. When the channel closes, the engine process
is gone: whoever waits gets an ending that says so, and so does everyone who comes later.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import AsyncGenerator
from typing import Any

from sample_engine.scheduling.request import Ending, Piece, Request
from sample_engine.server.channel import HEAD, Answer, Cancel, Command, Ready, packed
from sample_engine.server.processes import EngineProcess

READY_POLL_S = 0.05


class NotDone(RuntimeError):
    """A request ended otherwise than done; `ending` says how."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending


class CommandRefused(RuntimeError):
    """The engine did not do what it was told; `problem` is whose fault that is."""

    def __init__(self, problem: str, text: str) -> None:
        super().__init__(text)
        self.problem = problem


class EngineClient:
    """To one engine process; belongs to one event loop, from `connect` on."""

    def __init__(self, process: EngineProcess) -> None:
        self._process = process
        self._waiting: dict[str, asyncio.Queue[Piece | Ending]] = {}
        self._answers: dict[int, asyncio.Future[object]] = {}
        self._numbers = itertools.count()
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.lost = ""
        self._killed_because = ""

    async def connect(self) -> None:
        """Begin to read."""
        reader, self._writer = await asyncio.open_connection(sock=self._process.sock)
        self._task = asyncio.create_task(self._read(reader))

    async def pieces(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The response, piece by piece; raises NotDone. Leaving early cancels the request."""
        queue = self._waiting[request.request_id] = asyncio.Queue()
        try:
            self._send(request)
            while isinstance(message := await queue.get(), Piece):
                yield message.data
            if message.end != "done":
                raise NotDone(message)
        finally:
            if self._waiting.pop(request.request_id, None) is not None:
                self._send(Cancel(request.request_id))

    async def command(self, name: str, **arguments: object) -> Any:
        """What the engine answers; raises CommandRefused."""
        number = next(self._numbers)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(Command(number, name, arguments))
            if self.lost:
                raise CommandRefused("failed", self.lost)
            return await future
        finally:
            self._answers.pop(number, None)

    def kill(self, reason: str) -> None:
        """End the engine process; whoever waits is told the reason."""
        self._killed_because = reason
        self._process.kill()

    def _send(self, message: object) -> None:
        if self.lost and isinstance(message, Request):
            self._deal(Ending(message.request_id, "failed", self.lost))
        elif not self.lost:
            assert self._writer is not None, "connect first"
            self._writer.write(packed(message))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                head = await reader.readexactly(HEAD.size)
                self._deal(pickle.loads(await reader.readexactly(*HEAD.unpack(head))))
        except (asyncio.IncompleteReadError, ConnectionError):
            await self._lose()

    def _deal(self, message: object) -> None:
        if isinstance(message, Answer):
            self._settle(message)
        elif isinstance(message, Piece):
            if (queue := self._waiting.get(message.request_id)) is not None:
                queue.put_nowait(message)
        elif isinstance(message, Ending):
            if (queue := self._waiting.pop(message.request_id, None)) is not None:
                queue.put_nowait(message)
        else:
            assert isinstance(message, Ready)

    def _settle(self, answer: Answer) -> None:
        future = self._answers.get(answer.number)
        if future is None or future.done():
            return
        if answer.problem:
            future.set_exception(CommandRefused(answer.problem, str(answer.value)))
        else:
            future.set_result(answer.value)

    async def _lose(self) -> None:
        """The channel is closed: find out how the process ended, and tell everyone."""
        while not (end := self._process.has_ended()):
            await asyncio.sleep(READY_POLL_S)
        self.lost = self._killed_because or f"the engine process ended ({end}); restart the server"
        for request_id in list(self._waiting):
            self._deal(Ending(request_id, "failed", self.lost))
        for number in list(self._answers):
            self._settle(Answer(number, self.lost, "failed"))
