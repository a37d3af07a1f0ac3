"""Records what a study wants to know of a configuration beside its speed: stage events, stacks, gauges.

The server is under the load of the timed runs meanwhile, once with its events on (the ledger) and once with a
profiler beside it (Layer 2). What cannot be recorded here is a problem that is told, and the rest goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from layers.collectors.load.plan import EndpointChoice
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.stacks.session import Follow
from layers.evidence.documents import write_document
from layers.evidence.wording import first_few
from layers.layer2_stacks.choice import Choice
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.suspect import Place, suspects
from layers.layer2_stacks.weigh import weigh
from layers.layer3_sweep.collect import Running, Servers
from layers.layer3_sweep.driven import DrivenLoad
from layers.layer3_sweep.protocol import SERVER
from layers.layer4_ab.study.evidence import IDLE, Evidence, Share, ledger_of, places_of
from layers.layer4_ab.study.folder import begin_job, evidence_path
from layers.layer4_ab.study.jobs import Job
from layers.layer4_ab.study.steps import Configuration
from layers.layer4_ab.study.studies import Study, StudyLoad
from layers.stages.analyse import analyse
from layers.stages.collect import collect_stages
from layers.stages.collect_live import events_of, record_events
from layers.stages.judge import judge
from parsers.errors import PerfkitError, UsageError
from perfkit.cli.layer2_load import LoadWanted
from perfkit.cli.messages import say
from perfkit.cli.stack_recording import loaded_service, record_whole_time

TOLD = "it was told to end"


def run_evidence(study: Study, folder: Path, job: Job, told: threading.Event) -> str:
    """Record one job; why it ended before its last configuration, empty where it did not."""
    place, load = begin_job(folder, job), study.load(job.load)
    plan = study.plan(load, tuple(dict(one.settings) for one in job.cells))
    with Servers(plan, place) as servers:
        for number, one in enumerate(job.cells):
            if told.is_set():
                return TOLD
            running = servers.at(SERVER, number)
            recorder = Recorder(study, load, one, running, (place / one.key).resolve(), told)
            found = recorder.record()
            if told.is_set():
                return TOLD
            write_document(evidence_path(place, one.key), found)
            lacks = f"; lacks {first_few(found.problems)}" if found.problems else ""
            say(f"evidence, {job.load}, {one.name}: ledger and {len(found.shares)} shares of threads{lacks}")
    return ""


class Recorder:
    """One configuration of a server that runs."""

    def __init__(
        self,
        study: Study,
        load: StudyLoad,
        one: Configuration,
        running: Running,
        folder: Path,
        told: threading.Event,
    ) -> None:
        self._study, self._load, self._one, self._running = study, load, one, running
        self._folder, self._told = folder, told
        self._problems: list[str] = []

    def record(self) -> Evidence:
        """Events, then stacks, then the page of metrics."""
        adapter = self._running.adapter
        if adapter is None:
            return Evidence(self._one.key, problems=("the server answers nothing but load",))
        self._folder.mkdir(parents=True)
        found = Evidence(self._one.key, files=(str(self._folder),))
        with self._noting("stage events"):
            found = replace(found, ledger=ledger_of(self._events(adapter)))
        with self._noting("stacks"):
            found = replace(found, shares=tuple(self._shares(adapter)))
        with self._noting("gauges"):
            page = adapter.scrape()
            found = replace(found, gauges=dict(page.values) if page is not None else {})
        return replace(found, problems=tuple(self._problems))

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """What goes wrong costs that part alone, and is told."""
        try:
            yield
        except PerfkitError as error:
            self._problems.append(f"{what}: {error}")

    def _events(self, adapter: GenericAdapter) -> dict[str, object]:
        """The sections of `perfkit stages` of a recording under load."""
        folder = self._folder / "events"
        folder.mkdir()
        run = f"study-{self._one.key}"
        load = DrivenLoad(folder / "load", self._running.served.url, {}, *self._sent(adapter))
        roots = self._running.served.roots
        live = record_events(
            adapter, run, folder, self._study.events_s, roots, load, self._told, lambda: None
        )
        collected = events_of(collect_stages([*map(str, live.files)]), live.run)
        return judge(analyse(collected, run)).sections

    def _sent(self, adapter: GenericAdapter) -> tuple[EndpointChoice, str, int]:
        load, models = self._load, adapter.info().models
        return EndpointChoice(load.endpoint, models[0] if models else ""), load.data, load.concurrency

    def _shares(self, adapter: GenericAdapter) -> Iterator[Share]:
        """Of every thread and place that is asked for under this load."""
        asked = places_of(self._study, self._load.name)
        if not asked or not self._study.captures:
            return
        captures = self._captures(adapter)
        for thread, places in asked.items():
            try:
                yield from _of_thread(captures, thread, places)
            except UsageError:  # with some switches off its work is another thread's
                self._problems.append(f"no thread {thread} in the stacks")

    def _captures(self, adapter: GenericAdapter) -> tuple[Capture, ...]:
        folder = self._folder / "stacks"
        folder.mkdir()
        told: Callable[[], bool] = self._told.is_set
        wanted = LoadWanted(self._load.concurrency, endpoint=self._load.endpoint, data=self._load.data)
        service = loaded_service(self._running.served, adapter, wanted, folder, told)
        study = self._study
        live = record_whole_time(service, folder, study.capture_s, study.captures, Follow(told))
        self._problems += [f"stacks: {text}" for text in (*map(str, live.facts.obstacles), *live.unread)]
        return live.captures


def _of_thread(captures: tuple[Capture, ...], thread: str, places: list[str]) -> Iterator[Share]:
    if not captures:
        return
    weighed = weigh(captures, Choice(thread=thread))
    for one in suspects(weighed, [Place(text) for text in places]):
        share = one.share
        if str(one.mode) == IDLE:
            n = len(share.per_capture)
            yield Share(thread, one.place.text, share.value, share.low, share.high, share.ticks, n)
