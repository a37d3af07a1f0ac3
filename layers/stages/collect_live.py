"""Records a server's request events for a while: under load that perfkit drives, or under whatever there is.

Beside them the samplers of the sweep run, so that the ledger can say whether the server worked meanwhile, and
how busy its devices were. With a load of perfkit's the events begin before its first request and end after
its last; under a load of somebody else's, requests are cut at both ends, and counted so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layers.collectors.event_recording import EventRecording
from layers.collectors.server_adapters.adapter import MetricsSample
from layers.collectors.server_adapters.calls import require_ok
from layers.collectors.server_adapters.generic import METRICS, GenericAdapter
from layers.collectors.server_adapters.metrics import ServerMeans, server_means
from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact
from layers.evidence.wording import first_few
from layers.layer3_sweep.driven import Driven, DrivenLoad
from layers.layer3_sweep.model import DeviceUse
from layers.layer3_sweep.recorded import read_samples
from layers.layer3_sweep.surround import Surround
from layers.layer3_sweep.use import WallSpan, devices_over
from layers.stages.collect import CollectedStages
from parsers.errors import InvalidMeasurement, UsageError
from parsers.metrics_histograms import READ_AT
from parsers.metrics_page import labels_of, name_of

MIN_SECONDS, MAX_SECONDS = 1.0, 3600.0
STEP_S = 0.2
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Beside:
    """What samplers saw while a ledger was recorded: `means` is what the server said of itself (None: no page
    of metrics came), `devices` what its devices did, `retries` how many allocations of each stage were tried
    again (None: the server does not count them)."""

    means: ServerMeans | None
    devices: tuple[DeviceUse, ...]
    problems: tuple[str, ...]
    retries: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """How a ledger was recorded. `files` hold something; `empty` were made and hold nothing."""

    url: str
    kind: str
    run: str
    folder: Path
    asked_s: float
    lasted_s: float
    cut_short: bool
    driven: Driven | None
    beside: Beside
    files: tuple[Path, ...]
    empty: tuple[Path, ...] = ()

    @property
    def artifacts(self) -> list[Artifact]:
        """The samplers' recordings; the events are the ledger's own."""
        return [describe_artifact(path) for path in sorted(samples_in(self.folder).glob("samples-*.log"))]


def worked(driven: Driven | None, beside: Beside) -> bool | None:
    """Whether the server did anything meanwhile, by the load that perfkit drove or by its own metrics; None
    where neither says."""
    if driven is not None:
        return driven.tally.asked > 0
    means = beside.means
    told = [value for value in (means.running, means.waiting) if value is not None] if means else []
    return any(told) if told else None


def events_of(collected: CollectedStages, run: str) -> CollectedStages:
    """What was read without events of other runs: a folder may have been recorded into before. Events that
    name no run stay."""
    logs = [
        replace(log, events=tuple(event for event in log.events if event.run in ("", run)))
        for log in collected.logs
    ]
    return replace(collected, logs=tuple(log for log in logs if log.events))


def samples_in(folder: Path) -> Path:
    return folder / "samples"


def checked_seconds(seconds: float) -> float:
    """UsageError for what is no time to record."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise UsageError(f"--profile {seconds:g}: {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds")
    return seconds


class Window:
    """One recording: runs its load or waits, and reads what the samplers saw."""

    def __init__(self, adapter: GenericAdapter, roots: Sequence[str], folder: Path) -> None:
        self.adapter, self.folder = adapter, folder
        self.surround = Surround(roots, adapter)
        self._begun_ns = self._ended_ns = self._wall_ns = 0

    def pass_time(
        self, seconds: float, load: DrivenLoad | None, told: threading.Event, step: Callable[[], None]
    ) -> Driven | None:
        """Until the time is up, the load has ended, or somebody says to end."""
        self._begun_ns, self._wall_ns = time.monotonic_ns(), time.time_ns()

        def going_on() -> bool:
            step()
            return not told.is_set()

        try:
            if load is not None:
                return load.run(seconds, going_on)
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not told.wait(min(STEP_S, left)):
                step()
            return None
        finally:
            self._ended_ns = time.monotonic_ns()

    @property
    def lasted_s(self) -> float:
        return (self._ended_ns - self._begun_ns) / NS_PER_S

    def beside(self) -> Beside:
        """To be asked once the samplers have ended."""
        sampled = read_samples(samples_in(self.folder))
        pages = sorted(sampled.pages, key=lambda page: page.monotonic_ns)
        offset_ns = self._wall_ns - self._begun_ns
        span = WallSpan(self._begun_ns + offset_ns, self._ended_ns + offset_ns)
        return Beside(
            means=server_means(self.adapter, pages, self._begun_ns, self._ended_ns),
            devices=devices_over([one.file for one in sampled.recordings], span),
            problems=(*self.surround.problems, *sampled.problems),
            retries=self._retries(pages),
        )

    def _retries(self, pages: Sequence[MetricsSample]) -> Mapping[str, float] | None:
        """By stage, from the first page to the last; None where no page counts them, or the counters fell."""
        name = self.adapter.retries
        counted = [
            {key: value for key, value in page.values.items() if name and name_of(key) == name}
            for page in pages
        ]
        if not counted or not counted[-1]:
            return None
        grown = {key: value - counted[0].get(key, 0.0) for key, value in counted[-1].items()}
        if min(grown.values()) < 0:
            return None
        return {labels_of(key).get("stage", key): value for key, value in grown.items()}


def record_events(
    adapter: GenericAdapter,
    run: str,
    folder: Path,
    seconds: float,
    roots: Sequence[str],
    load: DrivenLoad | None,
    told: threading.Event,
    step: Callable[[], None],
    events: Path | None = None,
) -> Live:
    """Record into `events` (a folder of the server's disk; else one in `folder`) and see what came.

    ServerCallFailed where the server does not record, InvalidMeasurement where its files are not here.
    """
    if events is None:  # ours, so that we may remove what a server of another user writes there
        events = folder / "events"
        events.mkdir(parents=True, exist_ok=True)
    events = events.absolute()
    window = Window(adapter, roots, folder)
    if load is not None:
        load.warm_up(lambda: not told.is_set())
    with window.surround.around(samples_in(folder)), EventRecording(adapter, events, run) as recording:
        driven = window.pass_time(seconds, load, told, step)
    beside = window.beside()
    _require_visible(adapter, events, recording.files, beside, driven)
    sizes = {path: path.stat().st_size for path in recording.files}
    return Live(
        url=adapter.caller.base,
        kind=adapter.kind,
        run=run,
        folder=folder,
        asked_s=seconds,
        lasted_s=window.lasted_s,
        cut_short=told.is_set(),
        driven=driven,
        beside=beside,
        files=tuple(path for path, size in sizes.items() if size),
        empty=tuple(path for path, size in sizes.items() if not size),
    )


def record_pages(
    adapter: GenericAdapter,
    folder: Path,
    seconds: float,
    roots: Sequence[str],
    load: DrivenLoad | None,
    told: threading.Event,
    step: Callable[[], None],
) -> Live:
    """The server's page of metrics before and after; ServerCallFailed where it has none."""
    window = Window(adapter, roots, folder)
    if load is not None:
        load.warm_up(lambda: not told.is_set())
    pages = [folder / "metrics-before.prom", folder / "metrics-after.prom"]
    with window.surround.around(samples_in(folder)):
        _keep_page(adapter, pages[0])
        driven = window.pass_time(seconds, load, told, step)
        _keep_page(adapter, pages[1])
    return Live(
        url=adapter.caller.base,
        kind=adapter.kind,
        run="",
        folder=folder,
        asked_s=seconds,
        lasted_s=window.lasted_s,
        cut_short=told.is_set(),
        driven=driven,
        beside=window.beside(),
        files=tuple(pages),
    )


def _keep_page(adapter: GenericAdapter, path: Path) -> None:
    """As the server wrote it, below a line that says when."""
    answer = adapter.caller.get(METRICS)
    require_ok(f"{adapter.caller.base}{METRICS}", answer)
    path.write_bytes(f"{READ_AT.format(time.time_ns())}\n".encode() + answer.body)


def _require_visible(
    adapter: GenericAdapter, events: Path, files: Sequence[Path], beside: Beside, driven: Driven | None
) -> None:
    """Files that are not here are elsewhere, or were never made: by a server that says it did nothing."""
    if files or worked(driven, beside) is False:
        return
    there = first_few(sorted(path.name for path in events.iterdir())) if events.is_dir() else ""
    raise InvalidMeasurement(
        f"{adapter.caller.base} recorded, and no events_*.jsonl is in {events} of this machine"
        f"{f' (there is {there})' if there else ''}: the folder is the server's own; copy it here and run "
        "perfkit stages FOLDER, or name one that both see with --events-dir"
    )
