"""Records a live service: the process is chosen, checked, recorded under load, and what came of it is read.

    roots ──> processes of the service ──> chosen one ──> obstacles? ──yes──> nothing touched, and why
                                                             │no
               load (own, or the server's counters) around: cost, captures in turn
                                                             │
                                        captures with their evidence of load

Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from layers.collectors.rights import read_rights
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.sampling import ServerSampling
from layers.collectors.stacks.candidates import Chosen, choose
from layers.collectors.stacks.live_facts import Attempt, LiveFacts, Obstacle
from layers.collectors.stacks.load_evidence import cpu_share, of_counters, of_cpu, of_records
from layers.collectors.stacks.obstacles import Looker, stopped
from layers.collectors.stacks.process_facts import machine_of
from layers.collectors.stacks.profiler import find_profiler
from layers.collectors.stacks.recording import LoadEvidence, Mode
from layers.collectors.stacks.session import Follow, SessionPlan, record_session
from layers.collectors.stacks.standing import members, standing_still
from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.own_load import OwnLoad
from parsers.errors import StoreError, UnreadableInput
from parsers.pyspy_log import read_log
from parsers.pyspy_speedscope import read_speedscope

PREFIX = "stacks-"


@dataclass(frozen=True, slots=True)
class Service:
    """What is to be recorded: process ids and tags that stand for it, and the process that the user named.
    `adapter`: how its own counters are read; `load`: perfkit's own load for it. `standing`: processes that
    its requests pass through and that were found stopped."""

    roots: tuple[str, ...]
    named: int | None = None
    adapter: GenericAdapter | None = None
    load: OwnLoad | None = None
    standing: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """What came of it. `unread`: files that could not be read, and counters that did not come."""

    facts: LiveFacts
    captures: tuple[Capture, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    unread: tuple[str, ...] = field(default=())


def new_folder(artifacts: Path) -> Path:
    """A new folder for a recording that begins now."""
    wanted = f"{PREFIX}{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        folder = artifacts / (wanted if number == 1 else f"{wanted}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}: check the folder and its permissions") from error
        return folder
    raise StoreError(f"{artifacts}: no free name for a recording: check the folder")


def find_target(service: Service) -> tuple[Chosen, Looker]:
    """The process of the service that is to be recorded, and who looks; UsageError where it has none."""
    profiler = find_profiler()
    looker = Looker(read_rights(), profiler, machine_of(Path(profiler.path)) if profiler else "")
    return choose(_processes(service), looker, service.named), looker


def record_live(service: Service, chosen: Chosen, looker: Looker, plan: SessionPlan, follow: Follow) -> Live:
    """All captures of the chosen process; nothing is touched where something stands against it."""
    facts = chosen.candidate.facts
    if facts.nested:  # py-spy takes all threads there for running
        plan = replace(plan, modes=tuple(mode for mode in plan.modes if mode is not Mode.ACTIVE))
    live = LiveFacts(
        target=chosen.target,
        obstacles=_obstacles(service, chosen),
        nested=facts.nested,
        likelier=chosen.likelier,
        asked_rate_hz=plan.rate_hz,
        asked=plan.captures,
    )
    if live.obstacles or looker.profiler is None:
        return Live(live)
    with ExitStack() as stack:
        sampling = _sampling(service, plan.folder, stack)
        if service.load is not None:
            follow.say(f"load: {service.load.words}, warming up")
            stack.enter_context(service.load)
        ran = record_session(looker.profiler, facts, dict(chosen.candidate.names), plan, follow)
    attempts = tuple(_with_load(attempt, service, sampling) for attempt in ran.attempts)
    live = replace(live, cost=ran.cost, attempts=attempts, cut_short=ran.cut_short)
    live = replace(live, obstacles=_stopped_since(service, facts.pid))
    captures, unread = _read(attempts)
    problems = tuple(sampling.problems) if sampling is not None else ()
    return Live(live, captures, tuple(_artifacts(attempts)), (*unread, *problems))


def _obstacles(service: Service, chosen: Chosen) -> tuple[Obstacle, ...]:
    """What stands against recording the process; and against all of it, where one of its tree is stopped."""
    found = (*chosen.candidate.refused, *service.standing, *standing_still(service.roots))
    return tuple(dict.fromkeys(found))


def _stopped_since(service: Service, target: int) -> tuple[Obstacle, ...]:
    """Processes of the tree that stand still behind the captures; of the target itself each capture tells."""
    return tuple(one for one in standing_still(service.roots) if one != stopped(target))


def _processes(service: Service) -> list[int]:
    """Those of the service that live, without perfkit's own; one that was named in any case."""
    living = {process.pid for process in members(service.roots) if not process.gone}
    return sorted(living | ({service.named} if service.named is not None else set()))


def _sampling(service: Service, folder: Path, stack: ExitStack) -> ServerSampling | None:
    """The server's own counters, where there is an adapter and no load of ours tells more."""
    if service.adapter is None or service.load is not None:
        return None
    return stack.enter_context(ServerSampling(folder / "counters", service.adapter))


def _with_load(attempt: Attempt, service: Service, sampling: ServerSampling | None) -> Attempt:
    recording = attempt.recording
    evidence = _evidence(attempt, service, sampling)
    return replace(attempt, recording=replace(recording, load=evidence))


def _evidence(attempt: Attempt, service: Service, sampling: ServerSampling | None) -> LoadEvidence:
    cpu = cpu_share(attempt.recording.threads)
    if service.load is not None:
        return of_records(service.load.records, attempt.window_ns, service.load.words, cpu)
    if sampling is not None and service.adapter is not None:
        counted = of_counters(service.adapter, sampling.metrics.samples, attempt.window_ns, cpu)
        if counted is not None:
            return counted
    return of_cpu(cpu)


def _read(attempts: Sequence[Attempt]) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    captures, unread = list[Capture](), list[str]()
    for attempt in attempts:
        if not attempt.is_read:
            continue
        try:
            recorded = read_speedscope(attempt.path)
        except UnreadableInput as error:
            unread.append(str(error))
        else:
            mode = Mode(attempt.recording.mode)
            captures.append(Capture(recorded, mode, read_log(attempt.log_path), attempt.recording))
    return tuple(captures), tuple(unread)


def _artifacts(attempts: Sequence[Attempt]) -> Iterator[Artifact]:
    for attempt in attempts:
        for path in (attempt.path, attempt.log_path):
            if path and Path(path).is_file():
                yield describe_artifact(Path(path))
