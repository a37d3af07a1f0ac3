"""Small real HTTP servers that answer exactly what a test says, when it says it: bytes and pauses.

A `Script` is a list of steps: bytes to write, seconds to wait, CLOSE to end the connection, HANG to keep
silent. A server runs on a thread of its own with a loop of its own, on a free port of 127.0.0.1, and keeps
what it was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

CLOSE = "close"
HANG = "hang"
Step = bytes | float | str
Script = Sequence[Step]


@dataclass
class Asked:
    """One request as it came."""

    number: int
    head: bytes
    body: bytes


@dataclass
class Server:
    """Where it listens and what it was asked, in order of arrival."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0


def answer(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """A whole answer with its length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunked_head(content_type: str = "text/event-stream") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


@contextlib.contextmanager
def serving(script: Callable[[Asked], Script], tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server that plays the script of each request."""
    server, ready = Server(), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    held = set[asyncio.Task[Any] | None]()  # a loop holds its tasks weakly: one that hangs would be collected

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        held.add(asyncio.current_task())
        try:
            quiet = (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError)
            with contextlib.suppress(*quiet):
                while await _one(server, script, reader, writer):
                    pass
        finally:
            writer.close()

    async def serve() -> None:
        listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        listening.close()
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close in callbacks of their own

    def run() -> None:
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _one(
    server: Server,
    script: Callable[[Asked], Script],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    asked = Asked(len(server.asked), head, await reader.readexactly(_length(head)))
    server.asked.append(asked)
    server.in_flight += 1
    server.most_in_flight = max(server.most_in_flight, server.in_flight)
    try:
        return await _play(script(asked), writer)
    finally:
        server.in_flight -= 1


async def _play(script: Script, writer: asyncio.StreamWriter) -> bool:
    for step in script:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif isinstance(step, float):
            await asyncio.sleep(step)
        elif step == HANG:
            await asyncio.Event().wait()
        else:
            return False
    return True


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
