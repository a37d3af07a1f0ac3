"""How `perfkit sweep` runs: a folder of its own in the investigation, the client's floor, pass after pass.

Progress is a line on stderr for each pass that ended, and a moving one on a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.item import DataSet
from layers.collectors.load.team import Progress
from layers.evidence.store import ARTIFACTS, Investigation
from layers.evidence.wording import counted
from layers.layer3_sweep.calibration import Floor, cache_folder, calibrate, known_floor
from layers.layer3_sweep.collect import Servers, run_sweep
from layers.layer3_sweep.conclude import Ran
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.journal import Part, read_journal
from layers.layer3_sweep.protocol import PassKey, SweepPlan, Tally, capped, completed, passes_of
from layers.layer3_sweep.studies import START_S, STUDIES, starts_of
from layers.layer3_sweep.sweep_folder import JOURNAL, latest_folder, new_folder, read_plan, write_plan
from layers.layer3_sweep.target import require_listening
from parsers.errors import PerfkitError
from perfkit import __version__
from perfkit.cli.investigate_progress import left_text
from perfkit.cli.messages import complain, say

SAMPLERS_S = 3.0
"""About what it takes to start and end the processes around a pass."""
S_PER_MINUTE = 60


def run_new(
    plan: SweepPlan,
    investigation: Path,
    headers: Mapping[str, str],
    told: Callable[[], bool],
    *,
    anew: bool,
    own_cap: bool,
) -> Ran:
    """Begin a sweep. `anew` calibrates the client in any case; with `own_cap` the loads end where the
    server's own cap is."""
    for subject in (plan.subject, plan.control):
        if subject is not None and not subject.starts:
            require_listening(subject.url)
    with Investigation.open(investigation):
        folder = new_folder(investigation / ARTIFACTS)
    data = Asked.of(plan, folder)
    floor = client_floor(anew=anew)
    with Servers(plan, folder, headers) as servers:
        say(f"server: {plan.subject}")
        info = servers.at("", 0).info
        if own_cap:
            plan = replace(plan, loads=capped(plan.loads, info))
        plan = completed(plan, info)
        write_plan(folder, plan)
        why = _run(plan, folder, data, servers, headers, told)
    return data.ran(folder, plan, floor, why)


def resume_latest(
    investigation: Path, headers: Mapping[str, str], told: Callable[[], bool], command: str | None
) -> Ran:
    """Go on with the sweep that began last in this investigation."""
    folder = latest_folder(investigation / ARTIFACTS)
    plan = read_plan(folder, command)
    data = Asked.of(plan, folder)
    floor = client_floor(anew=False)
    with Servers(plan, folder, headers) as servers:
        why = _run(plan, folder, data, servers, headers, told)
    return data.ran(folder, plan, floor, why)


@dataclass(frozen=True, slots=True)
class Asked:
    """The data set of a plan, and its mixes by name."""

    data: DataSet
    mixes: Mapping[str, DataSet]

    @classmethod
    def of(cls, plan: SweepPlan, folder: Path) -> Self:
        """UsageError where items lack what the endpoint sends."""

        def made(words: str) -> DataSet:
            data = data_set(words, folder / "sound", plan.seed)
            endpoint_for(plan.endpoint).check(data.warmup("check"))
            return data

        return cls(made(plan.data), {name: made(words) for name, words in plan.mixes.items()})

    def ran(self, folder: Path, plan: SweepPlan, floor: Floor | None, why: str) -> Ran:
        """What is known once the sweep has run."""
        sets = list(self.mixes.values()) or [self.data]
        named = "; ".join(f"{name}: {data.name}" for name, data in self.mixes.items()) or self.data.name
        recurring = all(data.recurring for data in sets)
        return Ran(folder, plan, named, sets[0].regime, recurring, floor, why)


def client_floor(*, anew: bool) -> Floor | None:
    """That of this machine, measured where it is not known; None, and why is told, where it cannot be."""
    known = None if anew else known_floor(__version__, cache_folder())
    if known is not None:
        return known
    say("measuring what the load client costs on this machine, once (about 12 s)")
    try:
        return calibrate(__version__, cache_folder())
    except PerfkitError as error:
        complain(f"{error}; passes are judged without the client's floor")
        return None


def _run(
    plan: SweepPlan,
    folder: Path,
    data: Asked,
    servers: Servers,
    headers: Mapping[str, str],
    told: Callable[[], bool],
) -> str:
    if plan.study in STUDIES:
        say(f"study {plan.study}: {STUDIES[plan.study].question}")
    say(_announced(plan, folder))
    with moving_line() as move:
        try:
            lines = Lines(plan, move)
            return run_sweep(plan, folder, data.data, lines, headers, told, servers, data.mixes)
        except PerfkitError as error:  # what was recorded is judged and kept all the same
            complain(str(error))
            return str(error)


def _announced(plan: SweepPlan, folder: Path) -> str:
    """What is left to do, and about how long that takes."""
    keys, done = list(passes_of(plan)), read_journal(folder / JOURNAL, [])
    passes, extent = sum(not done.ended(key) for key in keys), plan.extent
    study = STUDIES.get(plan.study)
    what = [f"{extent.duration_s:g} s"] if extent.duration_s is not None else []
    what += [counted(extent.requests, "request")] if extent.requests is not None else []
    said = f"{counted(passes, 'pass')} of {' or '.join(what)}"
    if passes < len(keys):
        said = f"going on with {folder}: {said} of {len(keys)} are left"
    if extent.duration_s is None:
        return said
    about_s = passes * (extent.duration_s + extent.warmup_s + SAMPLERS_S)
    if study is not None:
        starts = -(-starts_of(plan, study) * passes // len(keys))
        about_s += starts * START_S
        said = f"{counted(len(plan.cells), 'cell')}, {said}, {counted(starts, 'start')} of the engine"
    about = f"about {max(1, round(about_s / S_PER_MINUTE))} min"
    drains = (
        "longer where answers are slow: a pass warms up with as many requests as are in flight, and waits "
    )
    return f"{said}: {about}; {drains}up to {extent.drain_s:g} s for the last ones"


@dataclass(slots=True)
class Lines:
    """Follows a sweep in words."""

    plan: SweepPlan
    move: Callable[[str], None]
    _place: str = field(default="")
    _began: dict[int, float] = field(default_factory=dict)
    _left: str = field(default="")

    def begins(self, key: PassKey, number: int, total: int, processes: int) -> None:
        of = f", {processes} load processes" if processes > 1 else ""
        self._place = f"{number:>{len(str(total))}}/{total}  {self.plan.name_of(key)}{of}"
        self._began.setdefault(number, time.monotonic())
        self._left = _left(self._began, number, total, time.monotonic())
        self.move(self._place)

    def moves(self, progress: Progress) -> None:
        part = "measuring" if progress.measuring else "warming up"
        now = f"{progress.elapsed_s:.0f} s, {progress.in_flight} in flight"
        done = f"{progress.ok} served, {progress.shed} shed, {progress.failed} failed"
        self.move(f"{self._place}: {part}, {now}, {done}{self._left}")

    def ended(self, key: PassKey, found: Tally, part: Part) -> None:
        self.move("")
        more = "" if part.ended == "done" else f"; {part.ended or 'cut'}{': ' * bool(part.error)}{part.error}"
        counts = f"{found.shed} shed, {found.errors} failed of {found.asked}"
        if found.warmup_shed:
            counts += f" ({found.warmup_shed} shed in the burst of the warm-up)"
        say(f"{self._place}: {found.served_per_s:.4g} served/s, {counts}{more}")

    def says(self, text: str) -> None:
        say(text)


def _left(began: Mapping[int, float], number: int, total: int, now: float) -> str:
    """What is left, if it takes as long as what ran; nothing before a pass has ended."""
    ran = number - min(began)
    if ran < 1:
        return ""
    left_s = (now - began[min(began)]) / ran * (total - number + 1)
    return f"; {left_text(left_s)}"


@contextmanager
def moving_line() -> Iterator[Callable[[str], None]]:
    """One line on stderr that is written over, on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def move(text: str) -> None:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield move
    finally:
        move("")
