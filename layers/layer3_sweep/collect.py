"""Runs a sweep: pass after pass, with everything on disk before the next one begins.

    for each pass of the protocol that does not stand yet
        the server of its cell        started where it does not run
        part n                        what is left of the pass, by its journal
        samplers around run_load      passes/<name>/part-n

What it leaves is read back by `read_passes`, after a whole sweep as after a kill: there is one way. A pass
that was cut goes on with the sequences that no part of it holds.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol, Self

from layers.collectors.busy_others import BusyOthers
from layers.collectors.load.driver import Why
from layers.collectors.load.item import DataSet
from layers.collectors.load.plan import EndpointChoice, Extent, LoadPlan
from layers.collectors.load.records import Phase, RequestRecord
from layers.collectors.load.team import KILLED, LoadRun, Progress, run_load
from layers.collectors.server_adapters.adapter import ServerCallFailed, ServerInfo
from layers.collectors.server_adapters.bundled import BundledAdapter, NeedsRestart
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.registry import adapter_for
from layers.layer3_sweep.at_once import void_at_once
from layers.layer3_sweep.journal import Answering, Done, Journal, Part, read_journal
from layers.layer3_sweep.protocol import (
    CONTROL,
    PassKey,
    SweepPlan,
    Tally,
    extent_at,
    passes_of,
    processes_for,
    tally,
    too_much,
)
from layers.layer3_sweep.recorded import part_records
from layers.layer3_sweep.silence import Silence
from layers.layer3_sweep.subject import Served, serving
from layers.layer3_sweep.surround import Surround
from layers.layer3_sweep.sweep_folder import JOURNAL, keep_items, part_folder, samples_folder, server_log
from layers.layer3_sweep.target import target_for
from parsers.errors import StoreError, UsageError
from parsers.loss import Loss

NS_PER_S = 1_000_000_000
MOST_PARTS = 3
"""In one go: a pass whose load process is killed each time is left as it is."""
TRIES, TRY_AGAIN_S = 10, 0.2
"""To change settings: the bundled engine does so only once nothing of the last requests is left."""
CANNOT_SET = (
    "--param: of servers that run already only the bundled engine can change settings, and not all of them; "
    "start it with --launch"
)
LEAST_LEFT_S = 0.05
"""A pass that was cut with less of its time left stands as it is."""

TOLD = "it was told to end"
"""Why a sweep, experiment or collection ended that was interrupted."""

Parts = Sequence[Sequence[RequestRecord]]
"""The records of each part of a pass."""


class Watcher(Protocol):
    """Who follows a sweep."""

    def begins(self, key: PassKey, number: int, total: int, processes: int) -> None: ...

    def moves(self, progress: Progress) -> None: ...

    def ended(self, key: PassKey, found: Tally, part: Part) -> None: ...

    def says(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Running:
    """A server of a sweep, what it can be asked, and the samplers around it. `adapter`: None where the server
    answers nothing but load; `taken`: the settings that it was started with, or changed to."""

    cell: int
    served: Served
    adapter: GenericAdapter | None
    surround: Surround
    stack: ExitStack
    info: ServerInfo | None
    taken: Mapping[str, str]

    def answering(self, arm: str) -> Answering:
        """For the journal."""
        here = platform.node() if self.served.roots else ""
        return Answering(arm, self.cell, self.served.url, self.info, here, self.served.problem)


class Servers:
    """The servers of a sweep, each started when it is first asked for, and anew for another cell."""

    def __init__(self, plan: SweepPlan, folder: Path, headers: Mapping[str, str] | None = None) -> None:
        self._plan, self._folder, self._headers = plan, folder, headers or {}
        self._running: dict[str, Running] = {}

    def at(self, arm: str, cell: int) -> Running:
        """The server of this arm with the settings of this cell."""
        running = self._running.get(arm)
        if running is not None and running.cell == cell:
            return running
        changed = self._reconfigured(running, cell) if running is not None else None
        if changed is None and running is not None:
            del self._running[arm]
            running.stack.close()
        self._running[arm] = changed or self._started(arm, cell)
        return self._running[arm]

    def _started(self, arm: str, cell: int) -> Running:
        subject = self._plan.control if arm == CONTROL else self._plan.subject
        assert subject is not None
        settings, stack = self._plan.settings_of(cell), ExitStack()
        at_start = settings if subject.starts else {}
        served = stack.enter_context(serving(subject, at_start, server_log(self._folder)))
        adapter = self._adapter(served.url)
        surround = Surround(served.roots, adapter, self._plan.sample)
        running = Running(cell, served, adapter, surround, stack, _info(adapter), at_start)
        if subject.starts or not settings:
            return running
        if (changed := self._reconfigured(running, cell)) is None:
            raise UsageError(f"{subject.url}: {CANNOT_SET}")
        return changed

    def _reconfigured(self, running: Running, cell: int) -> Running | None:
        """The same server with the settings of another cell; None where it cannot change them as it runs."""
        adapter, settings = running.adapter, self._plan.settings_of(cell)
        if running.taken == settings:
            return replace(running, cell=cell)
        if not isinstance(adapter, BundledAdapter):
            return None
        for _ in range(TRIES):
            try:
                adapter.configure(settings)
                return replace(running, cell=cell, info=_info(adapter), taken=settings)
            except NeedsRestart:
                return None
            except ServerCallFailed:  # the last requests are just leaving
                time.sleep(TRY_AGAIN_S)
        return None

    def _adapter(self, url: str) -> GenericAdapter | None:
        try:
            return adapter_for(url, self._headers)
        except ServerCallFailed:  # the load says the same, and more of it
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.stack.close()


@dataclass(slots=True)
class Sweep:
    """One sweep at work; made by `run_sweep`."""

    plan: SweepPlan
    folder: Path
    data: DataSet
    headers: Mapping[str, str]
    watcher: Watcher
    told: Callable[[], bool]
    servers: Servers
    journal: Journal
    done: Done
    mixes: Mapping[str, DataSet] = field(default_factory=dict)
    tallies: dict[PassKey, Tally] = field(default_factory=dict)
    gone: dict[tuple[int, str], str] = field(default_factory=dict)
    void_told: bool = False
    began_s: float = field(default_factory=time.monotonic)

    def run(self) -> str:
        """Run what does not stand yet; why it ended before the last pass, empty where it did not."""
        keys = list(passes_of(self.plan))
        self.tallies |= {key: tally(list(chain(*self._records(key)))) for key in keys if self.done.ended(key)}
        for number, key in enumerate(keys, 1):
            if why := self._why_end():
                return why
            if not self.done.ended(key) and not self._given_up(key):
                self._pass(key, number, len(keys))
        return ""

    def _why_end(self) -> str:
        if self.told():
            return TOLD
        budget_s = self.plan.time_budget_s
        if budget_s is not None and time.monotonic() - self.began_s >= budget_s:
            return f"its time budget of {budget_s:g} s was used up"
        return ""

    def _given_up(self, key: PassKey) -> bool:
        place = self.plan.loads.index(key.load)
        stops = too_much(self.plan, self.tallies)
        above = any((s.cell, s.arm) == (key.cell, key.arm) and place >= s.above for s in stops)
        return above or (key.cell, key.arm) in self.gone

    def _pass(self, key: PassKey, number: int, total: int) -> None:
        for _ in range(MOST_PARTS):
            earlier, parts = self._records(key), self.done.of(key)
            part = Part(key, len(parts) + 1, part_folder(key.name, len(parts) + 1))
            extent = rest_of(extent_at(self.plan.extent, key.load), earlier)
            if parts and extent is None:
                last = replace(part, number=part.number - 1, folder=parts[-1].folder, ended=Why.DONE)
                self._end(last, tally(list(chain(*earlier))))
            elif extent is not None:
                self._part(part, extent, earlier, number, total)
            if self.done.ended(key) or self.told():
                return

    def _part(self, part: Part, extent: Extent, earlier: Parts, number: int, total: int) -> None:
        key = part.key
        running = self._server(key)
        plan = self._load_plan(part, running, extent, earlier)
        self.done.take(part)
        self.journal.begins(part)
        self.watcher.begins(key, number, total, plan.processes)
        silence = Silence(running.served.roots, plan.timeouts.first_byte_s, self.watcher.says)
        others = BusyOthers(running.served.roots)
        with running.surround.around(samples_folder(plan.folder)):
            run = run_load(plan, partial(self._watch, silence))
        ended = replace(part, ended=_ended(run), error=_error(run))
        if silence.why and not self.told():
            ended = replace(ended, ended=Why.SERVER_GONE, error=silence.why)
        if ended.whole and (how := running.served.ended()):
            ended = replace(ended, ended=Why.SERVER_GONE, error=how)
        found = tally([*chain(*earlier), *run.records])
        if ended.whole:
            self._end(ended, found)
        now = replace(found, served_per_s=tally(run.records).served_per_s)  # without the time between parts
        self.watcher.ended(key, now, ended)
        if not earlier and not self.told() and self.plan.sample:
            self._tell_void(void_at_once(plan.folder, key, run.records, others), last=number == total)
        if ended.ended == Why.SERVER_GONE:
            self.gone[key.cell, key.arm] = ended.error
        if any(end.why == Why.NOT_WRITTEN for end in run.ends):
            raise StoreError(f"{_error(run)}: perfkit sweep --resume goes on once that is mended")

    def _tell_void(self, why: Sequence[str], *, last: bool) -> None:
        for one in why:
            self.watcher.says(f"    void: {one}")
        if why and not self.void_told and not last:
            self.void_told = True
            self.watcher.says("    Ctrl-C ends the sweep here, and what it has stays: perfkit sweep --resume")

    def _server(self, key: PassKey) -> Running:
        running = self.servers.at(key.arm, key.cell)
        known = self.done.servers.get((key.arm, key.cell))
        if known is None or known.url != running.served.url:
            answering = running.answering(key.arm)
            self.journal.answers(answering)
            self.done.servers[key.arm, key.cell] = answering
        return running

    def _end(self, part: Part, found: Tally) -> None:
        self.journal.ended(part)
        self.done.take(part)
        self.tallies[part.key] = found

    def _records(self, key: PassKey) -> Parts:
        losses: list[Loss] = []  # they are told when the sweep is read back
        return [part_records(self.folder, part, losses) for part in self.done.of(key)]

    def _watch(self, silence: Silence, progress: Progress) -> bool:
        self.watcher.moves(progress)
        return not (self.told() or silence.look(progress))

    def _load_plan(self, part: Part, running: Running, extent: Extent, earlier: Parts) -> LoadPlan:
        plan, key = self.plan, part.key
        mix = plan.mix_of(key.cell)
        data, name = self.mixes.get(mix, self.data), f"{mix or key.cell}/{key.load}/{key.repeat}"
        seen = {k.load: t.events_per_s for k, t in self.tallies.items() if k.arm == key.arm}
        processes = plan.processes or processes_for(key.load, seen, len(os.sched_getaffinity(0)))
        return LoadPlan(
            folder=self.folder / part.folder,
            target=target_for(running.served.url, self.headers),
            endpoint=_asked_of(running, plan.endpoint, key.arm),
            items=keep_items(self.folder, data.measured(name)),
            warmup_items=keep_items(self.folder, data.warmup(f"{name}/part {part.number}")),
            load=key.load,
            extent=extent,
            timeouts=plan.timeouts,
            shed=plan.shed,
            processes=min(processes, key.load.concurrency or processes),
            seed=plan.seed + 1000 * key.repeat + part.number,
            nonce=data.nonce(f"{name}/{key.arm}"),
            server_gone_s=plan.server_gone_s,
            done=tuple(sorted({r.sequence for r in chain(*earlier) if r.phase is Phase.MEASURED})),
        )


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    data: DataSet,
    watcher: Watcher,
    headers: Mapping[str, str] | None = None,
    told: Callable[[], bool] = lambda: False,
    servers: Servers | None = None,
    mixes: Mapping[str, DataSet] | None = None,
) -> str:
    """Run or go on with the sweep of this folder; why it ended before its last pass, empty where it did not.
    `mixes` are those of the plan, by name.

    `headers` may be secrets and are written nowhere. `told` says whether to end: the pass that runs is cut
    then. Raises what `serving` and `run_load` raise; what was recorded until then stays.
    """
    losses: list[Loss] = []
    done = read_journal(folder / JOURNAL, losses)
    with ExitStack() as stack:
        servers = servers or stack.enter_context(Servers(plan, folder, headers))
        journal = stack.enter_context(Journal(folder / JOURNAL))
        sweep = Sweep(plan, folder, data, headers or {}, watcher, told, servers, journal, done, mixes or {})
        return sweep.run()


def _asked_of(running: Running, endpoint: EndpointChoice, arm: str) -> EndpointChoice:
    """The control may call the model otherwise: then the first that it names is asked for."""
    models = running.info.models if arm == CONTROL and running.info is not None else ()
    return replace(endpoint, model=models[0]) if models and endpoint.model not in models else endpoint


def _info(adapter: GenericAdapter | None) -> ServerInfo | None:
    try:
        return adapter.info() if adapter is not None else None
    except ServerCallFailed:
        return None


def _ended(run: LoadRun) -> str:
    """Why a part ended by itself: the worst of its processes; empty where it was cut."""
    whys = [end.why for end in run.ends]
    if any(why in (KILLED, Why.STOPPED, Why.NOT_WRITTEN) for why in whys):
        return ""
    worst = (Why.SERVER_GONE, Why.ONLY_FAILURES, Why.NOT_DRAINED)
    return str(next((why for why in worst if why in whys), Why.DONE))


def _error(run: LoadRun) -> str:
    return next((end.error for end in run.ends if end.error), run.connect_problem)


def rest_of(extent: Extent, earlier: Parts) -> Extent | None:
    """What a pass has left to send after its earlier parts; None for nothing. Pure."""
    measured = [[r for r in records if r.phase is Phase.MEASURED] for records in earlier]
    sent = {record.sequence for record in chain(*measured)}
    if extent.requests is not None and len(sent) >= extent.requests:
        return None
    if extent.duration_s is None:
        return extent
    left_s = extent.duration_s - sum(map(_length_s, measured))
    return replace(extent, duration_s=left_s) if left_s > LEAST_LEFT_S else None


def _length_s(records: Sequence[RequestRecord]) -> float:
    """From the first intended start to the last sign of life."""
    starts = [record.intended_ns for record in records]
    ends = [record.end_ns for record in records if record.end_ns is not None]
    return (max([*starts, *ends]) - min(starts)) / NS_PER_S if starts else 0.0
