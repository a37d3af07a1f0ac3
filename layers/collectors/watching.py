"""A watch over the machine while something else runs: who uses its GPUs and its CPUs.

    with Watching(folder, [server.tag]) as watching:
        ...the load...
    watched = watching.watched

Two samplers of its own, apart from those that measure: one of all GPUs, one of the host. Without a GPU the
host is watched alone; `problems` say what is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from layers.collectors.gpu.fields import PROCESS_OURS
from layers.collectors.gpu.live import START_TIMEOUT_S, Sampler, free_path
from layers.collectors.gpu.readings import Recording, read_recording
from layers.collectors.host_source import BESIDE
from layers.collectors.processes import family_of_roots, scan
from parsers.series_model import Series

GPUS, HOST = "gpu-watch", "host-watch"
PERIOD_NS = 500_000_000
"""NVML's utilisation looks back 1/6 to 1 s: twice a second misses little, and costs little. perfkit's
choice."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What was recorded. `problems`: what could not be watched, and why. `at_end`: processes that were ours
    when it ended; those that came after the sampler's last look are in no recording. `begin_ns`, `end_ns`:
    when it was asked to watch (unix ns; 0: not known)."""

    recordings: tuple[Recording, ...]
    problems: tuple[str, ...]
    at_end: frozenset[int] = frozenset()
    begin_ns: int = 0
    end_ns: int = 0

    @property
    def series(self) -> tuple[Series, ...]:
        return tuple(series for recording in self.recordings for series in recording.file.series)

    @property
    def family(self) -> frozenset[int]:
        """Every process that was ours at any time of the watch, perfkit's own among them."""
        return self.at_end | {series.pid for series in self.series if series.field == PROCESS_OURS}


class Watching:
    """A watch that runs. Use as a context manager; `watched` stands after it.

    `folder` takes the recordings. `roots` are process ids and tags of launches: they, what descends from
    them, and this process with its children are ours.
    """

    def __init__(self, folder: Path, roots: Sequence[str] = (), period_ns: int = PERIOD_NS) -> None:
        self._folder, self._service, self._period_ns = folder, list(roots), period_ns
        self._me = str(os.getpid())
        self._samplers: list[Sampler] = []
        self.problems: list[str] = []
        self._began_ns = 0
        self.watched = Watched((), ())

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        for source, targets in ((HOST, [*self._service, BESIDE, self._me]), (GPUS, [])):
            sampler = Sampler(source, free_path(self._folder, source), self._period_ns, targets)
            if problem := sampler.wait_ready(START_TIMEOUT_S):
                self.problems.append(problem)
            else:
                self._samplers.append(sampler)
        self._began_ns = time.time_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended_ns = time.time_ns()
        at_end = frozenset(family_of_roots(scan(), [*self._service, self._me]))
        self.problems += [problem for sampler in self._samplers if (problem := sampler.stop())]
        recordings = tuple(read_recording(sampler.path) for sampler in self._samplers)
        self.watched = Watched(recordings, tuple(self.problems), at_end, self._began_ns, ended_ns)
