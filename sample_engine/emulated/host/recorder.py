"""Records the host's half of a profile: calls into the device, and annotations."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sample_engine.profile import Annotation, HostCall


class Recorder:
    """Off at first. `correlations` numbers the calls of all streams in the order in which they are made.

    Use: `begun_ns = recorder.begin()`, the call, then `if begun_ns: recorder.end(...)`.
    """

    def __init__(self) -> None:
        self.correlations = itertools.count(1)
        self.calls: list[HostCall] = []
        self.annotations: list[Annotation] = []
        self._on = False

    def start(self) -> None:
        """Forget what was recorded, and record."""
        self.calls, self.annotations = [], []
        self._on = True

    def stop(self) -> None:
        self._on = False

    def begin(self) -> int:
        """The time, 0 when nothing is recorded."""
        return time.perf_counter_ns() if self._on else 0

    def end(self, operation: str, correlation: int, begun_ns: int) -> None:
        """A call that began at `begun_ns` ends now."""
        thread_id = threading.get_native_id()
        self.calls.append(HostCall(operation, correlation, begun_ns, time.perf_counter_ns(), thread_id))

    @contextmanager
    def annotate(self, text: str) -> Iterator[None]:
        """Record a named stretch of host code, one that began while recording was on."""
        begun_ns = self.begin()
        yield
        if begun_ns:
            thread_id = threading.get_native_id()
            self.annotations.append(Annotation(text, begun_ns, time.perf_counter_ns(), thread_id))
