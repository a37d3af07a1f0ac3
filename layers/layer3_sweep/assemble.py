"""From the folder of a sweep to its passes: all of it is read back, whenever it was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from layers.collectors.load.folder import processes_in, records_path
from layers.collectors.load.plan import Load
from layers.collectors.load.records import Outcome, Phase, last_attempts
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.metrics import server_means
from layers.collectors.server_adapters.registry import KINDS
from layers.collectors.server_cpu import cpu_use
from layers.evidence.artifacts import describe_artifact
from layers.evidence.guard import Checked, apply_guards
from layers.evidence.measurement import Artifact
from layers.layer3_sweep.contents import Contents
from layers.layer3_sweep.guards_grid import SETUP_GUARDS, Arms, SetUp
from layers.layer3_sweep.journal import Answering, Done, read_journal
from layers.layer3_sweep.model import SweepPass
from layers.layer3_sweep.passes import Beside, pass_of
from layers.layer3_sweep.points import scope_of
from layers.layer3_sweep.protocol import SERVER, PassKey, SweepPlan, passes_of
from layers.layer3_sweep.recorded import Recorded, read_part
from layers.layer3_sweep.server_use import host_use, server_use
from layers.layer3_sweep.sweep_folder import JOURNAL, samples_folder
from parsers.errors import InvalidMeasurement, UnreadableInput
from parsers.loss import Loss

BEGAN_ANEW = "counters of the server fell inside the window: a part of it restarted, and they are left out"


@dataclass(frozen=True, slots=True)
class Assembled:
    """A sweep as it is now. `checked`: guards on the content of each of its passes; `not_run`: loads of the
    server under test without any pass; `lost`: what could not be run or read, in words."""

    plan: SweepPlan
    passes: tuple[SweepPass, ...]
    checked: tuple[tuple[Checked, ...], ...]
    records: Mapping[PassKey, tuple[Recorded, ...]]
    servers: Mapping[tuple[str, int], Answering]
    not_run: tuple[Load, ...]
    lost: tuple[str, ...]
    artifacts: tuple[Artifact, ...]


def assemble(
    folder: Path, plan: SweepPlan, floor_ms: float | None = None, *, recurring: bool = False
) -> Assembled:
    """Read all of a sweep's folder; what is damaged is in `lost`. `recurring`: whether the same items come in
    every part, as they do."""
    losses, lost = list[Loss](), list[str]()
    done = read_journal(folder / JOURNAL, losses)
    recorded = {key: tuple(read_part(folder, part) for part in done.of(key)) for key in passes_of(plan)}
    contents = Contents(folder, plan, recorded, recurring)
    passes, checked = list[SweepPass](), list[tuple[Checked, ...]]()
    for key, parts in recorded.items():
        name = plan.name_of(key)
        lost += _lost(name, parts)
        if any(one.records for one in parts):
            try:
                swept, told = _pass(plan, key, parts, done, contents, floor_ms)
            except InvalidMeasurement as error:
                lost.append(f"{name}: {error}")
            else:
                lost += [f"{name}: {told}"] if told else []
                passes.append(replace(swept, accuracy=contents.accuracy(key)))
                setup = _setup(plan, key, parts, done)
                of_pass = apply_guards(SETUP_GUARDS, setup, scope_of(swept))
                checked.append((*contents.guards(key, passes[-1]), *of_pass))
    ran = {key.load for key, parts in recorded.items() if parts and key.arm == SERVER}
    return Assembled(
        plan=plan,
        passes=tuple(passes),
        checked=tuple(checked),
        records=recorded,
        servers=done.servers,
        not_run=tuple(load for load in plan.loads if load not in ran),
        lost=(*(f"{JOURNAL}: {loss.what}" for loss in losses), *lost),
        artifacts=tuple(_artifacts(folder, chain(*recorded.values()))),
    )


def _setup(plan: SweepPlan, key: PassKey, parts: Sequence[Recorded], done: Done) -> SetUp:
    server = done.servers.get((key.arm, key.cell))
    records = [record for one in parts for record in one.records]
    warmup = [r for r in last_attempts(records) if r.phase is Phase.WARMUP and key.load.concurrency]
    asked = plan.settings_of(key.cell) if key.arm == SERVER else {}
    return SetUp(
        asked=server.info.expanded(asked) if server and server.info else asked,
        reported=server.info.settings or None if server and server.info else None,
        warmup=len(warmup),
        warmup_shed=sum(record.outcome is Outcome.SHED for record in warmup),
    )


def arms_of(found: Assembled) -> Arms:
    """The whole of a sweep, for the guards on it."""
    counts = Counter((key.arm, key.cell) for key, parts in found.records.items() if parts)
    return Arms(
        models={arm: s.info.models for (arm, _), s in found.servers.items() if s.info is not None},
        machines={arm: server.machine for (arm, _), server in found.servers.items()},
        passes=counts,
    )


def _lost(name: str, parts: Sequence[Recorded]) -> list[str]:
    """What is missing of a pass, each with the name of the pass."""
    found = [loss.what for one in parts for loss in one.losses]
    found += [problem for one in parts for problem in one.problems]
    if parts and not parts[-1].part.whole:
        found.append("cut before its end: perfkit sweep --resume goes on with it")
    elif parts and parts[-1].part.error:
        found.append(f"{parts[-1].part.ended}: {parts[-1].part.error}")
    return [f"{name}: {what}" for what in found]


def _pass(
    plan: SweepPlan,
    key: PassKey,
    parts: Sequence[Recorded],
    done: Done,
    contents: Contents,
    floor_ms: float | None,
) -> tuple[SweepPass, str]:
    """The pass, and what of the server's own account is missing."""
    server = done.servers.get((key.arm, key.cell))
    beside = Beside(
        pulses=[series for one in parts for series in one.pulses],
        floor_ms=floor_ms,
        sampled=[recording.file for one in parts for recording in one.recordings],
        input_audio_s=contents.input_audio_s(key),
        machine=server.machine if server else "",
    )
    swept = pass_of(
        [record for one in parts for record in one.records],
        key.load,
        repeat=key.repeat,
        arm=key.arm,
        settings=plan.cells[key.cell],
        beside=beside,
        artifact=next(iter(_request_logs(contents.folder, parts)), None),
    )
    return _with_server(swept, parts, server)


def _with_server(
    swept: SweepPass, parts: Sequence[Recorded], server: Answering | None
) -> tuple[SweepPass, str]:
    """With what the server said of itself and its processes used, inside the window; what is missing."""
    start_ns, end_ns = swept.window.start_ns or 0, swept.window.end_ns or 0
    looks = [look for one in parts for look in one.looks]
    used = host_use(cpu_use(looks, start_ns, end_ns))
    if used is not None:
        others_share = swept.host.others_share if swept.host else None
        swept = replace(swept, host=replace(used, others_share=others_share))
    pages = sorted((page for one in parts for page in one.pages), key=lambda page: page.monotonic_ns)
    if server is None or server.info is None or not pages:
        return swept, ""
    means = server_means(_adapter(server.info.kind, server.url), pages, start_ns, end_ns)
    if means is None:
        return swept, "no page of the server's metrics came inside the window"
    told = replace(
        swept, server=server_use(means), stage_ms=means.stage_ms or None, batches=means.batches or None
    )
    return told, BEGAN_ANEW if means.reset else ""


def _adapter(kind: str, url: str) -> GenericAdapter:
    """For the names of its metrics alone: nothing is asked of the server, which may be gone."""
    return next((one for one in KINDS if one.kind == kind), GenericAdapter)(Caller(url))


def _request_logs(folder: Path, parts: Sequence[Recorded]) -> list[Artifact]:
    places = [folder / one.part.folder for one in parts if one.records]
    return [describe_artifact(records_path(place, n)) for place in places for n in processes_in(place)]


def _artifacts(folder: Path, parts: Iterable[Recorded]) -> list[Artifact]:
    """Requests, and the recordings of the samplers around them; what vanished meanwhile is left out."""
    found = []
    for one in parts:
        found += _request_logs(folder, [one])
        for path in sorted(samples_folder(folder / one.part.folder).glob("samples-*.log")):
            try:
                found.append(describe_artifact(path))
            except UnreadableInput:  # it is told by `problems` of its part
                continue
    return found
