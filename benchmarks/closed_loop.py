"""A closed loop over HTTP, against a server that the benchmark starts.

So many clients, each of which sends its next request when the last one was answered. A request that is
refused (503) is dropped, not sent again.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

BOUNDARY = "benchmark-of-the-engine"
OK, SHED = 200, 503


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a running one."""

    port: int

    def post(self, path: str, **body: Any) -> Any:
        """JSON there and back."""
        data = json.dumps(body).encode()
        asked = urllib.request.Request(self._url(path), data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as reply:
            return json.load(reply)

    def info(self) -> Any:
        with urllib.request.urlopen(self._url("/server_info")) as reply:
            return json.load(reply)

    def metric(self, name: str) -> float:
        """One without labels, from /metrics."""
        with urllib.request.urlopen(self._url("/metrics")) as reply:
            lines = reply.read().decode().splitlines()
        return float(next(one.split()[1] for one in lines if one.startswith(f"{name} ")))

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def served(*options: str) -> Iterator[Server]:
    """`sample_engine serve` on a free port."""
    command = [sys.executable, "-m", "sample_engine", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if "serving" not in line:
                sys.exit("the server did not start")
            yield Server(int(line.rsplit(":", 1)[1]))
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request."""

    status: int
    text: str
    latency_s: float


@dataclass(frozen=True, slots=True)
class Pass:
    """All requests of a load, and how long it took."""

    answers: Sequence[Answer]
    took_s: float

    def count(self, status: int) -> int:
        return sum(one.status == status for one in self.answers)

    @property
    def done_per_s(self) -> float:
        return self.count(OK) / self.took_s

    def latencies_s(self) -> list[float]:
        return [one.latency_s for one in self.answers if one.status == OK]


def transcriptions(server: Server, wavs: Sequence[bytes], clients: int) -> Pass:
    """Each audio once, by so many clients at a time."""
    return asyncio.run(_pass(server, [_request(one) for one in wavs], clients))


def _request(wav: bytes) -> bytes:
    """A whole HTTP request, made before the clock starts."""
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    body = part.encode() + wav + f"\r\n--{BOUNDARY}--\r\n".encode()
    head = (
        "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _pass(server: Server, requests: Sequence[bytes], clients: int) -> Pass:
    left, answers = iter(requests), list[Answer]()
    connections = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(clients)]
    started_s = time.perf_counter()
    await asyncio.gather(*(_client(*connection, left, answers) for connection in connections))
    took_s = time.perf_counter() - started_s
    for _, writer in connections:
        writer.close()
    return Pass(answers, took_s)


async def _client(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    left: Iterator[bytes],
    answers: list[Answer],
) -> None:
    for request in left:
        sent_s = time.perf_counter()
        writer.write(request)
        status, body = await _response(reader)
        text = json.loads(body)["text"] if status == OK else ""
        answers.append(Answer(status, text, time.perf_counter() - sent_s))


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    status = int(head.split(" ", 2)[1])
    length = int(head.split("content-length:")[1].split("\r\n", 1)[0])
    return status, await reader.readexactly(length)
