"""The connections of a run: opened before it, kept for all of it, replaced where the server closes one."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from functools import partial

from layers.collectors.load.connection import Connection
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.plan import Target
from layers.collectors.load.records import Outcome

AT_A_TIME = 32
"""Connections opened at once: fewer than the backlog of any server (uvicorn's is 2048, socketserver's 5 to
128); a full one costs a second each."""


class Connections:
    """Takes `ended` as connections do, and calls it too for an exchange that found no connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        connect_s: float,
        ended: Callable[[Connection | None, Exchange], None],
    ) -> None:
        self._loop, self._target, self._connect_s, self._ended = loop, target, connect_s, ended
        self._tls = tls_context(target)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self.opened = 0

    async def open(self, count: int) -> str:
        """Open that many; nothing where all came, else the first reason why one did not."""
        problem = ""
        while count > 0 and not problem:
            batch = [self._connect() for _ in range(min(count, AT_A_TIME))]
            for result in await asyncio.gather(*batch, return_exceptions=True):
                if isinstance(result, Connection):
                    self._idle.append(result)
                elif isinstance(result, OSError | TimeoutError):
                    problem = problem or _reason(result)
                else:
                    raise result
            count -= len(batch)
        return problem

    def send(self, exchange: Exchange, *, new: bool = False) -> None:
        """Send it on the connection that was used last, else, or where `new` asks for it, on a new one."""
        while self._idle and not new:
            connection = self._idle.pop()
            if connection.usable:
                connection.send(exchange)
                return
        task = self._loop.create_task(self._send_on_new(exchange))
        self._opening.add(task)
        task.add_done_callback(partial(self._opened, exchange))

    def give_back(self, connection: Connection) -> None:
        if connection.usable:
            self._idle.append(connection)
        else:
            self._open.discard(connection)

    def busy(self) -> list[tuple[Connection, Exchange]]:
        """The connections that carry a request, with it."""
        return [(c, c.exchange) for c in self._open if c.exchange is not None]

    def close(self) -> None:
        """Close all, and stop opening: what is in flight ends as unfinished."""
        for task in self._opening:
            task.cancel()
        for connection in list(self._open):
            connection.close()
        self._open.clear()
        self._idle.clear()

    async def _send_on_new(self, exchange: Exchange) -> None:
        try:
            connection = await self._connect()
        except (OSError, TimeoutError) as error:
            self._fail(exchange, Outcome.REFUSED, _reason(error))
        else:
            exchange.connected_ns = time.monotonic_ns()
            connection.send(exchange)

    def _opened(self, exchange: Exchange, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        if task.cancelled():
            self._fail(exchange, Outcome.UNFINISHED, "the run ended while it was connecting")

    def _fail(self, exchange: Exchange, ending: Outcome, error: str) -> None:
        exchange.end_ns = time.monotonic_ns()
        exchange.ending, exchange.error = ending, error
        self._ended(None, exchange)

    async def _connect(self) -> Connection:
        target = self._target
        name = target.host if self._tls else None
        async with asyncio.timeout(self._connect_s):
            _, connection = await self._loop.create_connection(
                lambda: Connection(self._ended),
                target.address,
                target.port,
                ssl=self._tls,
                server_hostname=name,
            )
        self.opened += 1
        self._open.add(connection)
        return connection


def tls_context(target: Target) -> ssl.SSLContext | None:
    """None where the target speaks plain HTTP. OSError for a file of certificates that cannot be read."""
    if not target.tls:
        return None
    context = ssl.create_default_context(cafile=target.ca_file or None)
    if not target.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _reason(error: OSError | TimeoutError) -> str:
    if isinstance(error, TimeoutError) and not error.args:
        return "no connection in time"
    return error.strerror or str(error)
