"""The control channel between front and engine: a pair of sockets, a length and a pickle for each message.

Both ends are the same program, started together, so pickles are as trusted as its code. The engine's end is
read by one thread and written by one thread; any thread may queue a message and goes on at once. The front's
end belongs to asyncio (`client.py`).
"""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue

HEAD = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Cancel:
    """Front to engine: nobody waits for this request any more."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Command:
    """Front to engine: do something beside requests; `Answer` comes with the same number."""

    number: int
    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Engine to front. `problem`: what kind of refusal, empty if it was done; `value` is then its text."""

    number: int
    value: object
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """Engine to front, first of all: it serves, or why it does not."""

    problem: str = ""


def packed(message: object) -> bytes:
    """As it goes over the channel."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(body)) + body


def receive(sock: socket.socket) -> object:
    """One message, waiting for it; raises EOFError when the other end is closed."""
    return pickle.loads(_exactly(sock, *HEAD.unpack(_exactly(sock, HEAD.size))))


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError("the other end of the channel is closed")
        data += part
    return data


class EngineEnd:
    """The engine's end of the channel."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._outbox: SimpleQueue[object] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="channel", daemon=True)
        self._writer.start()

    def send(self, message: object) -> None:
        """Queue a message; any thread, never waits."""
        self._outbox.put(message)

    def messages(self) -> Iterator[object]:
        """All that come, until the front closes its end or is gone."""
        try:
            while True:
                yield receive(self._sock)
        except (EOFError, OSError):
            return

    def close(self) -> None:
        """Write what is queued, then end."""
        self._outbox.put(None)
        self._writer.join()
        self._sock.close()

    def _write(self) -> None:
        while (message := self._outbox.get()) is not None:
            try:
                self._sock.sendall(packed(message))
            except OSError:
                return  # the front is gone; `messages` ends too, and with it the engine
