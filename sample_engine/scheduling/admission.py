"""Who is let in: build workers, and a bounded backlog in front of them.

Requests that no worker has begun yet form the backlog; when it is full, a request is shed at once, with the
name of the limit. What has been built waits in the decoder's queue, which has no bound. So limits that are
too small show in two ways: requests that are refused, and requests that wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from sample_engine.config.limits import Limits
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.request import Flight

log = logging.getLogger(__name__)


class Admission:
    """`build` prepares a request and passes it on; ValueError there means that its input cannot be served."""

    def __init__(self, build: Callable[[Flight], None], limits: Limits, metrics: Metrics) -> None:
        self._build = build
        self._limits = limits
        self._metrics = metrics
        self._inbox: SimpleQueue[Flight | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._building = 0
        self._workers = [
            threading.Thread(target=self._work, name=f"build-{index}", daemon=True)
            for index in range(limits.build_workers)
        ]
        for one in self._workers:
            one.start()

    @property
    def building(self) -> int:
        """Requests with a worker or in the backlog."""
        return self._building

    def submit(self, flight: Flight) -> None:
        """Let a request in, or shed it; never waits."""
        if self._take_place():
            self._inbox.put(flight)
            return
        self._metrics.add("engine_shed_total", value="build_backlog")
        limits = self._limits
        flight.end(
            "shed",
            f"build_backlog is full: {limits.build_workers} requests are being built "
            f"and {limits.build_backlog} wait for it (build_workers, build_backlog)",
        )

    def stop(self) -> None:
        """End the workers, each after the request it has."""
        for _ in self._workers:
            self._inbox.put(None)
        for one in self._workers:
            one.join()

    def _take_place(self) -> bool:
        with self._lock:
            if self._building >= self._limits.build_workers + self._limits.build_backlog:
                return False
            self._count(1)
            return True

    def _work(self) -> None:
        while (flight := self._inbox.get()) is not None:
            if not flight.ended:
                self._try_to_build(flight)
            with self._lock:
                self._count(-1)

    def _try_to_build(self, flight: Flight) -> None:
        try:
            self._build(flight)
        except ValueError as error:
            flight.end("rejected", str(error))
        except Exception as error:
            log.exception("building %s failed", flight.request.request_id)
            flight.end("failed", f"building the request failed: {error}")

    def _count(self, change: int) -> None:
        self._building += change
        self._metrics.set("engine_requests_building", self._building)
