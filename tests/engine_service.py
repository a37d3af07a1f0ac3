"""An engine inside the test process: tiny stages on the emulated device, and who says what."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sample_engine.config.resolve import resolve
from sample_engine.engine import Engine
from sample_engine.observe.metrics import Metrics
from sample_engine.pipelines import make_pipeline
from sample_engine.scheduling.request import Ending, Kind, Piece, Request

pytest.importorskip("torch")

LONG_S = 60.0
PLAIN = {
    "size": "tiny",
    "preset": "baseline",
    "radix_key": "device",
    "budget_bytes": 64 << 20,
    "build_backlog": 1000,
}
"""No graphs, for captures take longer than most tests; and nothing is shed."""


class Service:
    """An engine, and everything that it said of each request, in order."""

    def __init__(self, **options: Any) -> None:
        self.said: dict[str, list[Piece | Ending]] = {}
        self.heard: list[Piece | Ending] = []
        self._changed = threading.Condition()
        self.metrics = Metrics()
        self.engine = Engine(resolve(options={**PLAIN, **options}), self.metrics, self._hear, make_pipeline)

    def ask(self, name: str, words: int = 2, kind: Kind = "speech", **more: Any) -> str:
        """Submit a request whose id is also its text."""
        self.said[name] = []
        text = " ".join(f"{name}-{index}" for index in range(words))
        self.engine.submit(Request(name, kind, text, **more))
        return name

    def ending(self, name: str) -> Ending:
        """Wait for it."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended(name), LONG_S), f"{name} never ended"
        last = self.said[name][-1]
        assert isinstance(last, Ending)
        return last

    def data(self, name: str) -> bytes:
        """The whole response of a request that is done."""
        ending = self.ending(name)
        assert ending.end == "done", ending.reason
        pieces = [one for one in self.said[name] if isinstance(one, Piece)]
        assert [one.index for one in pieces] == list(range(len(pieces)))
        return b"".join(one.data for one in pieces)

    def answers(self, names: Sequence[str]) -> list[bytes]:
        return [self.data(name) for name in names]

    def first_piece(self, name: str) -> None:
        """Wait for it."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.said[name], LONG_S)

    def settle(self) -> None:
        """Wait until nothing is on its way and all slots are free."""
        deadline_s = time.monotonic() + LONG_S
        while self.engine.in_flight or not self.engine.is_idle:
            assert time.monotonic() < deadline_s, "slots are still taken"
            time.sleep(1e-3)

    def count(self, name: str, value: str = "") -> float:
        return self.metrics.get(f"engine_{name}", value)

    def close(self) -> None:
        self.engine.close()
        self.metrics.close()

    def _hear(self, message: Piece | Ending) -> None:
        with self._changed:
            self.said[message.request_id].append(message)
            self.heard.append(message)
            self._changed.notify_all()

    def _ended(self, name: str) -> bool:
        return any(isinstance(one, Ending) for one in self.said[name])


@contextmanager
def service(**options: Any) -> Iterator[Service]:
    running = Service(**options)
    try:
        yield running
    finally:
        running.close()
