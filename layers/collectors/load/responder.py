"""A streaming server that is faster than its clients, to see what they cost: one thread, epoll, no parsing.

    python …/bootstrap.py layers.collectors.load.responder:main

prints its port. POST /stream/CHUNKS/GAP_MS (and any path below) answers with that many events of about 220
bytes, GAP_MS apart (0: all at once, in one write). Each event holds the moment of CLOCK_MONOTONIC at which it
was sent, as `"sent_ns":`, taken just before the send. GET answers with a list of one model, which load tools
ask for before they begin, and with `first_ns`: how long after its request was read the first event of each of
the last paced answers was sent. It ends when its stdin closes.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from parsers.children import child_command

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1764000000,'
    b'"model":"benchmark-model","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,'
    b'"finish_reason":null}],"sent_ns":%d}\n\n'
)
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
MODELS = {"object": "list", "data": [{"id": "benchmark-model", "object": "model"}]}
FIRST_KEPT = 100_000
SENT = re.compile(rb'"sent_ns":(\d+)')
BUFFER_BYTES = 1 << 16
BACKLOG = 1024
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Stream:
    """One connection, and the answer that it is in the middle of."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = self.method = b""
        self.left = self.gap_ns = self.asked_ns = 0

    def take(self) -> bool:
        """Whether a whole request has come; then it is taken, and its answer begins."""
        head_end = self.received.find(b"\r\n\r\n")
        if head_end < 0:
            return False
        head = self.received[:head_end]
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        end = head_end + 4 + int(length or b"0")
        if len(self.received) < end:
            return False
        self.received = self.received[end:]
        self.method, path, _ = head.split(b" ", 2)
        if self.method == b"POST":
            _, _, chunks, gap_ms, *_ = path.split(b"/")
            self.left, self.gap_ns = int(chunks), int(gap_ms) * NS_PER_MS
        return True

    def send_json(self, what: object) -> None:
        body = json.dumps(what).encode()
        self.connection.sendall(JSON_HEAD % len(body) + body)

    def send_all(self) -> None:
        part = chunk()
        self.connection.sendall(HEAD + part * self.left + END)
        self.left = 0

    def send_next(self) -> bool:
        """Send one event; whether more are to come."""
        self.left -= 1
        self.connection.sendall(chunk() if self.left else chunk() + END)
        return self.left > 0


def chunk() -> bytes:
    event = EVENT % time.monotonic_ns()
    return b"%x\r\n%s\r\n" % (len(event), event)


class Server:
    """The loop."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.port: int = self._listening.getsockname()[1]
        self._streams: dict[int, Stream] = {}
        self._due: list[tuple[int, int, Stream]] = []
        self._order = itertools.count()
        self._first_ns: deque[int] = deque(maxlen=FIRST_KEPT)
        self._poll = select.epoll()
        for file in (self._listening.fileno(), sys.stdin.fileno()):
            self._poll.register(file, select.EPOLLIN)

    def run(self) -> None:
        while True:
            for file, _ in self._poll.poll(self._wait_s()):
                if file == sys.stdin.fileno():
                    return
                if file == self._listening.fileno():
                    self._accept()
                else:
                    self._read(self._streams[file])
            self._send_due()

    def _wait_s(self) -> float:
        if not self._due:
            return -1
        return max(0, self._due[0][0] - time.monotonic_ns()) / NS_PER_S

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams[connection.fileno()] = Stream(connection)
        self._poll.register(connection.fileno(), select.EPOLLIN)

    def _read(self, stream: Stream) -> None:
        try:
            data = stream.connection.recv(BUFFER_BYTES)
            stream.received += data
            while data and stream.take():
                self._begin(stream)
        except ConnectionError:
            data = b""
        if not data:
            del self._streams[stream.connection.fileno()]
            stream.connection.close()
            stream.left = 0

    def _begin(self, stream: Stream) -> None:
        if stream.method != b"POST":
            stream.send_json(MODELS | {"first_ns": list(self._first_ns)})
        elif stream.gap_ns == 0:
            stream.send_all()
        else:
            stream.asked_ns = time.monotonic_ns()
            stream.connection.sendall(HEAD)
            self._push(stream.asked_ns + stream.gap_ns, stream)

    def _push(self, due_ns: int, stream: Stream) -> None:
        heapq.heappush(self._due, (due_ns, next(self._order), stream))

    def _send_due(self) -> None:
        """Every event that is due; the next one of its stream is due a gap after this one was."""
        now_ns = time.monotonic_ns()
        while self._due and self._due[0][0] <= now_ns:
            due_ns, _, stream = heapq.heappop(self._due)
            if self._sent(stream):
                self._push(due_ns + stream.gap_ns, stream)

    def _sent(self, stream: Stream) -> bool:
        if stream.left and stream.asked_ns:
            self._first_ns.append(time.monotonic_ns() - stream.asked_ns)
            stream.asked_ns = 0
        try:
            return stream.left > 0 and stream.send_next()
        except ConnectionError:
            return False


def main() -> int:
    """The process."""
    server = Server()
    print(server.port, flush=True)
    server.run()
    return 0


@contextmanager
def responding(core: int | None = None) -> Iterator[int]:
    """The port of a responder in a process of its own, on one core where that is named; ended behind the
    block."""
    command = child_command("layers.collectors.load.responder:main")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


def added_ns(pieces: Iterable[tuple[int, bytes]]) -> list[int]:
    """How long after its moment of sending each event was stamped, of pieces with their stamps."""
    return [stamp - int(sent[1]) for stamp, data in pieces for sent in SENT.finditer(data)]
