"""Load for a measurement beside it: so many requests at a time, by the client and the data sets of the sweep.

    load = DrivenLoad(folder, url, headers, endpoint, "text:uniform,words=3-8", 16)
    load.warm_up(going_on)          its own items, drained before it returns
    ...the measurement begins...
    driven = load.run(10.0, going_on)

The first requests are spread over the time that one takes, so that the measurement sees no burst, and what
was sent is waited for, so that it sees whole requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan
from layers.collectors.load.records import RequestRecord
from layers.collectors.load.team import LoadRun, run_load
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.protocol import Tally, tally
from layers.layer3_sweep.sweep_folder import keep_items
from layers.layer3_sweep.target import target_for
from parsers.errors import InvalidMeasurement

WARM_UP_ROUNDS = 2
"""Requests of the warm-up, for each that is in flight: the first round pays what a first request costs."""
DRAIN_S = 60.0
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Driven:
    """What became of the load; `problem`: why it was not as asked, empty where it was."""

    concurrency: int
    tally: Tally
    length_s: float
    problem: str


class DrivenLoad:
    """A closed loop against one server. `folder` takes its items and records, and must be new."""

    def __init__(
        self,
        folder: Path,
        url: str,
        headers: Mapping[str, str],
        endpoint: EndpointChoice,
        data: str,
        concurrency: int,
    ) -> None:
        self.folder, self.concurrency = folder, concurrency
        folder.mkdir(parents=True, exist_ok=True)
        self._data = data_set(data, folder / "sound")
        endpoint_for(endpoint).check(self._data.warmup("check"))
        self._plan = LoadPlan(
            folder=folder,
            target=target_for(url, headers),
            endpoint=endpoint,
            items=Path(),
            load=Load(concurrency=concurrency),
            extent=Extent(requests=1, drain_s=DRAIN_S),
            nonce=self._data.nonce("driven"),
        )
        self._takes_s = 0.0

    def warm_up(self, going_on: Callable[[], bool]) -> None:
        """InvalidMeasurement where the server serves none of it."""
        extent = Extent(requests=WARM_UP_ROUNDS * self.concurrency, drain_s=DRAIN_S)
        items = keep_items(self.folder, self._data.warmup("driven"))
        run = run_load(self._of("warm-up", items, extent), lambda _: going_on())
        latencies = [r.latency_ns for r in run.records if r.ok and r.latency_ns is not None]
        if not latencies and going_on():
            raise InvalidMeasurement(
                f"the warm-up of the load: nothing was served: {_why(run) or 'all was shed'}"
            )
        self._takes_s = fmean(latencies) / NS_PER_S if latencies else 0.0

    def run(self, seconds: float, going_on: Callable[[], bool]) -> Driven:
        """So long, and until what was sent by then has ended."""
        extent = Extent(duration_s=seconds, ramp_s=min(self._takes_s, seconds / 2), drain_s=DRAIN_S)
        items = keep_items(self.folder, self._data.measured("driven"))
        run = run_load(self._of("load", items, extent), lambda _: going_on())
        length_s = (run.end_ns - run.begin_ns) / NS_PER_S
        return Driven(self.concurrency, tally(run.records), length_s, "" if run.whole else _why(run))

    def _of(self, name: str, items: Path, extent: Extent) -> LoadPlan:
        return replace(self._plan, folder=self.folder / name, items=items, extent=extent)


def _why(run: LoadRun) -> str:
    """In words: how a process ended, else what became of the last request."""
    ends = [f"{end.why}{': ' * bool(end.error)}{end.error}" for end in run.ends if end.error]
    failed: list[RequestRecord] = [record for record in run.records if not record.ok]
    last = [f"{record.outcome} {record.status or ''} {record.error}".strip() for record in failed[-1:]]
    return next(iter([*ends, *last]), run.connect_problem)
