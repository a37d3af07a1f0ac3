"""A closed loop over HTTP: so many clients, each of which sends its next request when the last was answered.

A request that is refused (503) is dropped, not sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from sample_engine.bench.inputs import Ask
from sample_engine.models.vocoder_sizes import SAMPLE_RATE_HZ

OK, SHED, BROKEN = 200, 503, 0
"""Statuses; the last one for a connection that broke."""
PCM_BYTES_A_SECOND = 2 * SAMPLE_RATE_HZ
TIMEOUT_S = 300.0
"""For one answer; a server that hangs must not hang the bench."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one request. `audio_s`: synthesised or transcribed."""

    status: int
    latency_s: float
    audio_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """All answers, and the time from the first request to the last answer."""

    answers: Sequence[Answer]
    took_s: float

    def count(self, status: int) -> int:
        return sum(one.status == status for one in self.answers)

    def latencies_s(self) -> list[float]:
        """Of what was done."""
        return [one.latency_s for one in self.answers if one.status == OK]

    @property
    def audio_s(self) -> float:
        return sum(one.audio_s for one in self.answers if one.status == OK)

    @property
    def done_per_s(self) -> float:
        return self.count(OK) / self.took_s


class Loop:
    """Runs one load."""

    def __init__(self, port: int, asks: Sequence[Ask]) -> None:
        self._port = port
        self._left: Iterator[Ask] = iter(asks)
        self._lock = threading.Lock()
        self._answers: list[Answer] = []

    def run(self, clients: int) -> Load:
        threads = [threading.Thread(target=self._client, daemon=True) for _ in range(clients)]
        started_s = time.perf_counter()
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return Load(self._answers, time.perf_counter() - started_s)

    def _client(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        try:
            while (ask := self._next()) is not None:
                self._answers.append(_asked(connection, ask))
        finally:
            connection.close()

    def _next(self) -> Ask | None:
        with self._lock:
            return next(self._left, None)


def _asked(connection: HTTPConnection, ask: Ask) -> Answer:
    started_s = time.perf_counter()
    try:
        connection.request("POST", ask.path, ask.body, {"Content-Type": ask.content_type})
        response = connection.getresponse()
        data, status = response.read(), response.status
    except (OSError, HTTPException):
        connection.close()
        data, status = b"", BROKEN
    audio_s = ask.audio_s or len(data) / PCM_BYTES_A_SECOND
    return Answer(status, time.perf_counter() - started_s, audio_s)
