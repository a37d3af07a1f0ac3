"""A folder of perfkit's own sweep as rounds: what is compared, what it was made with, what its counters did.

A sweep that started its server itself is one start for each cell of its grid; one that was given an address
is taken as one start, since nothing tells whether the server was restarted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layers.collectors.load.folder import PLAN as LOAD_PLAN
from layers.collectors.load.plan_json import decode_plan
from layers.layer3_sweep.assemble import assemble
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.journal import Answering
from layers.layer3_sweep.model import SweepPass
from layers.layer3_sweep.passes import requests_of
from layers.layer3_sweep.protocol import PassKey, SweepPlan
from layers.layer3_sweep.recorded import Recorded as RecordedPart
from layers.layer3_sweep.sweep_folder import as_json, read_plan
from layers.layer4_ab.distribution import of_records
from layers.layer4_ab.excluded import why_excluded
from layers.layer4_ab.model import Arm, Recorded, Round
from parsers.errors import PerfkitError

OF_THE_PLAN = ("endpoint", "extent", "shed", "timeouts", "seed", "processes")
"""Parts of a plan that must be the same in both arms. Which loads it has is another question."""
SOUND = "sound"
PLACES = frozenset({"host", "port", "pid", "url", "address", "rank", "nccl_port"})
"""Settings that say where a server is, not how it works."""


def sweep_rounds(
    arm: Arm, folder: Path, sound: Path | None = None, cell: Mapping[str, str] | None = None
) -> Recorded:
    """All passes of a sweep, or those with the settings of one cell; UnreadableInput where its folder cannot
    be read. `sound` holds the files that its data set made, where that is not its own folder."""
    plan = read_plan(folder)
    lost = list[str]()
    recurring = _recurring(plan, sound or folder / SOUND, lost)
    found = assemble(folder, plan, recurring=recurring)
    parts = {_identity(plan, key): recorded for key, recorded in found.records.items()}
    rounds = []
    for swept, checked in zip(found.passes, found.checked, strict=True):
        if cell is not None and dict(swept.settings) != dict(cell):
            continue
        recorded = parts[_of_pass(swept)]
        rounds.append(
            Round(
                arm=arm,
                start=_start(folder, plan, swept),
                number=1,
                swept=swept,
                facts=dict(_facts(plan, found.servers, swept))
                | (_items(folder, recorded) if recurring else {}),
                data={},
                begun_ns=_on_wall(recorded, swept.window.start_ns),
                ended_ns=_on_wall(recorded, swept.window.end_ns),
                excluded=why_excluded(swept, checked),
                ecdf_ms=of_records(requests_of([r for one in recorded for r in one.records], swept.window)),
                record=swept.artifact.sha256 if swept.artifact else "",
            )
        )
    return Recorded(
        rounds=tuple(rounds),
        lost=(*(f"{folder}: {text}" for text in found.lost), *lost),
        counters=_grown([r for key, r in found.records.items() if cell in (None, plan.cells[key.cell])]),
        artifacts=found.artifacts,
        starts_told=plan.subject.starts,
        logs=tuple(str(path) for path in sorted(folder.glob("server-*.log")) if path.stat().st_size),
    )


def _recurring(plan: SweepPlan, sound: Path, lost: list[str]) -> bool:
    """Whether the items come again in every part: the data set says, where it is still there."""
    try:
        return data_set(plan.data, sound, plan.seed).recurring
    except PerfkitError as error:
        lost.append(f"{plan.data}: {error}: whether items recur is not known")
        return False


Identity = tuple[object, int, str, tuple[tuple[str, str], ...]]


def _identity(plan: SweepPlan, key: PassKey) -> Identity:
    return (key.load, key.repeat, key.arm, tuple(sorted(plan.cells[key.cell].items())))


def _of_pass(swept: SweepPass) -> Identity:
    return (swept.load, swept.repeat, swept.arm, tuple(sorted(swept.settings.items())))


def _start(folder: Path, plan: SweepPlan, swept: SweepPass) -> str:
    cell = ", ".join(f"{name}={value}" for name, value in sorted(swept.settings.items()))
    return " ".join(part for part in (str(folder), swept.arm, cell if len(plan.cells) > 1 else "") if part)


def _facts(
    plan: SweepPlan, servers: Mapping[tuple[str, int], Answering], swept: SweepPass
) -> Iterator[tuple[str, str]]:
    """Of the plan, the command that started the server, its settings as it tells them, and the cell's."""
    told = as_json(plan)
    if swept.arm:
        yield "arm", swept.arm
    yield "data", plan.data
    for name in OF_THE_PLAN:
        yield from _flat(name, told[name])
    subject = told["subject"]
    if subject["command"] or subject["engine"] is not None:
        yield "launch", subject["command"] or " ".join(subject["engine"])
    cell = next((n for n, one in enumerate(plan.cells) if dict(one) == dict(swept.settings)), 0)
    server = servers.get((swept.arm, cell))
    if server is not None and server.info is not None:
        yield "server", f"{server.info.kind} {server.info.version}".strip()
        yield "models", ", ".join(server.info.models)
        yield from _flat("settings", server.info.settings)
    yield from swept.settings.items()


def _items(folder: Path, parts: Sequence[RecordedPart]) -> dict[str, str]:
    """What the items of a pass are known by, of a data set whose items come in every pass: its file may have
    been changed meanwhile, and keep its name."""
    plans = [folder / one.part.folder / LOAD_PLAN for one in parts if one.records]
    known = {decode_plan(path.read_text()).items.stem for path in plans if path.is_file()}
    return {"items": ", ".join(sorted(known))} if known else {}


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key not in PLACES:
                yield from _flat(f"{name}.{key}", part)
    elif value is not None:
        yield name, str(value)


def _on_wall(recorded: Sequence[RecordedPart], mono_ns: int | None) -> int | None:
    """A moment of a pass on the wall clock; None without a pair of clocks."""
    pulses = [series for part in recorded for series in part.pulses]
    return mono_ns + pulses[0].wall_offset_ns if pulses and mono_ns is not None else None


def _grown(records: Sequence[Sequence[RecordedPart]]) -> dict[str, float]:
    """By how much every sample of the server's pages grew, over these passes; one that fell began anew and is
    left out."""
    grown: dict[str, float] = {}
    for recorded in records:
        pages = sorted((p for part in recorded for p in part.pages), key=lambda page: page.monotonic_ns)
        if len(pages) < 2:
            continue
        for name, last in pages[-1].values.items():
            by = last - pages[0].values.get(name, 0.0)
            if by >= 0:
                grown[name] = grown.get(name, 0.0) + by
    return grown
