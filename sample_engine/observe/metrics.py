"""Numbers in shared memory: the engine writes, the front process reads them for /metrics.

Each metric of the catalogue has its place in an array of 64-bit floats (whole numbers are exact to 2^53). The
array is an anonymous mapping of a file descriptor, so a forked child has it, and a spawned one can open it.
Writers are threads of one process and share a lock; a reader may see two numbers of different moments.
"""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from sample_engine.observe.catalogue import METRICS, Metric

WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric with one label value. `numbers` is one number, or a histogram's counts (not cumulative, the
    last one above all bounds) and then the sum of what was observed.
    """

    metric: Metric
    value: str
    numbers: tuple[float, ...]


class Metrics:
    """All metrics of an engine. `fd` is for a spawned child: `Metrics(fd=...)` there is the same memory."""

    def __init__(self, fd: int | None = None, catalogue: Sequence[Metric] = METRICS) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._metrics = {one.name: one for one in catalogue}
        size = self._lay_out(catalogue) * WORD_BYTES
        self.fd = os.memfd_create("engine-metrics") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size)
        self._words = memoryview(self._map).cast("d")
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1.0, value: str = "") -> None:
        """Count; `value` is the label's."""
        place = self._places[name, value]
        with self._lock:
            self._words[place] += amount

    def set(self, name: str, number: float, value: str = "") -> None:
        """Set a gauge, or a counter that is counted elsewhere."""
        self._words[self._places[name, value]] = number

    def observe(self, name: str, number: float, value: str = "") -> None:
        """Put a number into its bucket of a histogram."""
        bounds = self._metrics[name].bounds
        place = self._places[name, value]
        with self._lock:
            self._words[place + bisect_left(bounds, number)] += 1
            self._words[place + len(bounds) + 1] += number

    def get(self, name: str, value: str = "") -> float:
        """A counter or gauge."""
        return self._words[self._places[name, value]]

    def samples(self) -> Iterator[Sample]:
        """Everything, in the order of the catalogue."""
        for (name, value), place in self._places.items():
            metric = self._metrics[name]
            yield Sample(metric, value, tuple(self._words[place : place + _words(metric)]))

    def close(self) -> None:
        self._words.release()
        self._map.close()
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lay_out(self, catalogue: Sequence[Metric]) -> int:
        place = 0
        for metric in catalogue:
            for value in metric.values:
                self._places[metric.name, value] = place
                place += _words(metric)
        return place


def _words(metric: Metric) -> int:
    return len(metric.bounds) + 2 if metric.kind == "histogram" else 1
