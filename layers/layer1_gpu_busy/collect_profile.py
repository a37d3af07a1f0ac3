"""Has a server profile itself for a while, under perfkit's load or whatever there is, and finds its traces.

started   through the server's adapter, into a folder that must be one of this machine as well
stopped   however it ends: by time, by Ctrl-C, and by a keeper where perfkit is killed
beside    what the server says of itself, a page of its metrics a second: a trace of an idle server looks
          like that of a host-bound one
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.event_recording import ProfileRecording
from layers.collectors.server_adapters.adapter import MetricsSample, ServerCallFailed
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.metrics import ServerMeans, server_means
from layers.layer1_gpu_busy.profile_host import HostBeside, between_looks, look_at_host, roots_here
from layers.layer3_sweep.driven import Driven, DrivenLoad
from parsers.errors import InvalidMeasurement, UsageError

MIN_SECONDS, MAX_SECONDS = 0.5, 600.0
"""A trace grows by some MB a second and process: minutes of it are hardly read by anything."""
LOOK_EVERY_S = 1.0
STEP_S = 0.2
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Profiled:
    """One profile. `traces` are whole and on this machine; `beside`: what the server said of itself meanwhile
    (None: no page of metrics came); `without`: why; `driven`: perfkit's own load, if there was one; `host`:
    whether the server had its cores (None: its processes are not seen from here)."""

    url: str
    kind: str
    run: str
    asked_s: float
    lasted_s: float
    cut_short: bool
    traces: tuple[Path, ...]
    beside: ServerMeans | None
    without: str
    driven: Driven | None = None
    host: HostBeside | None = None


def checked_profile(seconds: float) -> float:
    """UsageError for what is no time to profile."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise UsageError(f"--profile {seconds:g}: {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds")
    return seconds


def record_profile(
    adapter: GenericAdapter,
    folder: Path,
    run: str,
    seconds: float,
    told: threading.Event,
    step: Callable[[], None] = lambda: None,
    load: DrivenLoad | None = None,
) -> Profiled:
    """Profile into `folder` (an absolute path, the server's own); it ends early once `told` is set.

    A load is warmed up before, and the profile lasts until what it sent has ended.

    ServerCallFailed where the server has no profiler or refuses, InvalidMeasurement where its traces are not
    on this machine: then it says where they are.
    """
    looks = _Looks(adapter)
    if load is not None:
        load.warm_up(lambda: not told.is_set())
    with ProfileRecording(adapter, folder, run) as recording:
        roots = roots_here(adapter.caller.base)
        host, began_ns = look_at_host(roots), time.monotonic_ns()
        driven = looks.during(seconds, load, told, step)
        ended_ns, host_after = time.monotonic_ns(), look_at_host(roots)
    return Profiled(
        url=adapter.caller.base,
        kind=adapter.kind,
        run=run,
        asked_s=seconds,
        lasted_s=(ended_ns - began_ns) / NS_PER_S,
        cut_short=told.is_set(),
        traces=_here(adapter, [path for path in recording.files if ".json" in path.suffixes]),
        beside=server_means(adapter, looks.pages, began_ns, ended_ns),
        without=looks.problem,
        driven=driven,
        host=between_looks(host, host_after),
    )


class _Looks:
    """Pages of the server's metrics while it profiles itself."""

    def __init__(self, adapter: GenericAdapter) -> None:
        self._adapter = adapter
        self.pages: list[MetricsSample] = []
        self.problem = ""
        self._next_s = 0.0

    def during(
        self, seconds: float, load: DrivenLoad | None, told: threading.Event, step: Callable[[], None]
    ) -> Driven | None:
        """Until the time is up, the load has ended, or somebody says to end."""
        self._next_s = time.monotonic()

        def going_on() -> bool:
            step()
            self._look_where_due()
            return not told.is_set()

        if load is not None:
            return load.run(seconds, going_on)
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0 and not told.wait(min(STEP_S, left_s)):
            going_on()
        return None

    def _look_where_due(self) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s += LOOK_EVERY_S
            self._look()

    def _look(self) -> None:
        try:
            page = self._adapter.scrape()
        except ServerCallFailed as error:
            self.problem = str(error)
            return
        if page is None:
            self.problem = "it has no page of metrics"
        else:
            self.pages.append(page)


def _here(adapter: GenericAdapter, traces: list[Path]) -> tuple[Path, ...]:
    """The traces; InvalidMeasurement where this machine does not see them."""
    away = [str(path) for path in traces if not path.exists()]
    if away or not traces:
        where = ", ".join(away) or "no path"
        raise InvalidMeasurement(
            f"{adapter.caller.base} profiled itself and wrote {where}, which is not on this machine: copy it "
            "here and run perfkit layer1 --trace FILE, or name a folder that both see with --trace-dir"
        )
    return tuple(traces)
