"""Asks the arms of a collection, cell after cell, with everything on disk before the next cell begins.

    for each arm: A, B, A once more
        its server               started anew, or the one that runs
        for each cell            caches emptied where it is a cold one; every item once; counters before and
                                 behind; then the cell's file, whole

The load client does the asking, as in sweeps; the bytes of answers are taken from what it records of the
wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from layers.collectors.load.driver import Why
from layers.collectors.load.endpoints.endpoint import Reading, Sound
from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.folder import wire_path
from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan
from layers.collectors.load.records import RequestRecord, last_attempts
from layers.collectors.load.settle import record_of
from layers.collectors.load.team import LoadRun, run_load
from layers.collectors.load.wire_log import read_wire
from layers.collectors.server_adapters.adapter import ServerCallFailed, ServerInfo
from layers.collectors.server_adapters.generic import GenericAdapter, total
from layers.collectors.server_adapters.registry import adapter_for
from layers.evidence.documents import write_document
from layers.layer3_sweep.collect import TOLD
from layers.layer3_sweep.subject import serving
from layers.layer3_sweep.sweep_folder import keep_items, server_log
from layers.layer3_sweep.target import target_for
from layers.layer5_regression.collection_folder import ARM as ARM_DOCUMENT
from layers.layer5_regression.collection_folder import (
    LOAD,
    ArmDocument,
    CellDocument,
    arm_folder,
    cell_path,
    write_cell,
)
from layers.layer5_regression.collection_plan import NAMES, ArmPlan, B, CollectionPlan, items_in
from layers.layer5_regression.grid import COLD
from layers.layer5_regression.model import Cell
from layers.layer5_regression.proofs import grown
from layers.layer5_regression.separation import contents_of
from parsers.errors import InvalidMeasurement
from parsers.loss import Loss
from parsers.output_model import Kind, Output, Payload, text_payload
from parsers.recorded_outputs import ids_payload, pcm_payload

DRAIN_S = 600.0
"""Every answer is waited for: what is cut off is no output."""


class Watcher(Protocol):
    """Who follows a collection."""

    def arm(self, name: str, what: str, cells: int) -> None: ...

    def cell(self, cell: Cell, number: int, total: int, answered: int, asked: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """An arm at work: its server, its folder, and how it is asked. `adapter`: None where the server answers
    nothing but requests."""

    plan: CollectionPlan
    arm: ArmPlan
    folder: Path
    url: str
    adapter: GenericAdapter | None
    endpoint: EndpointChoice
    items: Sequence[Item]
    items_at: Path
    headers: Mapping[str, str]


def collect(
    plan: CollectionPlan,
    folder: Path,
    items: Sequence[Item],
    watcher: Watcher,
    headers: Mapping[str, str],
    told: Callable[[], bool],
) -> str:
    """Ask what is not asked yet; why it ended before its last cell, empty where it did not.

    Raises what `serving` and `run_load` raise; cells that ended stay.
    """
    for arm in plan.arms:
        if why := _ask_arm(plan, arm, folder, items, watcher, headers, told):
            return f"{NAMES.get(arm.name, arm.name)}: {why}"
    return ""


def _ask_arm(
    plan: CollectionPlan,
    arm: ArmPlan,
    folder: Path,
    items: Sequence[Item],
    watcher: Watcher,
    headers: Mapping[str, str],
    told: Callable[[], bool],
) -> str:
    place = arm_folder(folder, arm)
    left = [number for number in range(len(plan.cells)) if not cell_path(place, number).exists()]
    if not left:
        return ""
    watcher.arm(NAMES.get(arm.name, arm.name), _named(arm), len(left))
    place.mkdir(exist_ok=True)
    with serving(arm.subject, arm.settings, server_log(place)) as served:
        adapter, info = _known(served.url, headers)
        endpoint = _with_model(plan.endpoint, info)
        write_document(place / ARM_DOCUMENT, _document(plan, arm, items, served.url, info))
        kept = keep_items(folder, items)
        asked = Asked(plan, arm, place, served.url, adapter, endpoint, items, kept, headers)
        for number in left:
            if told():
                return TOLD
            outputs, run = _ask_cell(asked, number, told)
            if run is None:
                return TOLD
            answered = sum(not output.error for output in outputs)
            watcher.cell(plan.cells[number], number + 1, len(plan.cells), answered, len(outputs))
    return ""


def _named(arm: ArmPlan) -> str:
    settings = [f"{name}={value}" for name, value in arm.settings.items()]
    return ", ".join([f"{arm.subject}", *settings])


def _known(url: str, headers: Mapping[str, str]) -> tuple[GenericAdapter | None, ServerInfo | None]:
    """What can be asked of the server beside answers."""
    try:
        adapter = adapter_for(url, headers)
        return adapter, adapter.info()
    except ServerCallFailed:  # requests say the same, and more of it
        return None, None


def _with_model(endpoint: EndpointChoice, info: ServerInfo | None) -> EndpointChoice:
    if endpoint.model or info is None or not info.models:
        return endpoint
    name, path, options = endpoint.name, endpoint.path, endpoint.options
    return EndpointChoice(name, info.models[0], path, endpoint.stream, options)


def _document(
    plan: CollectionPlan, arm: ArmPlan, items: Sequence[Item], url: str, info: ServerInfo | None
) -> ArmDocument:
    contents = contents_of(items)
    return ArmDocument(
        name=arm.name,
        planned=sum(items_in(cell, len(items)) for cell in plan.cells),
        cells=plan.cells,
        contents=tuple(sorted(contents.hashes)),
        longest=contents.longest,
        unit=contents.unit,
        server=f"{info.kind} {info.version}".strip() if info is not None else url,
        declared={name: arm.settings[name] for name in plan.declared if name in arm.settings},
        settings=dict(info.settings) if info is not None else {},
        counters=plan.counters if arm.name == B else (),
    )


def _ask_cell(asked: Asked, number: int, told: Callable[[], bool]) -> tuple[list[Output], LoadRun | None]:
    """Ask one cell and write its file; no run where it was cut, and then no file."""
    cell = asked.plan.cells[number]
    flushed = _flushed(asked.adapter) if cell.cache == COLD else None
    before = _page(asked.adapter)
    run = run_load(_load_plan(asked, cell, number), lambda _: not told())
    if not run.whole and (told() or any(end.why == Why.STOPPED for end in run.ends)):
        return [], None
    _require_asked(run, cell)
    outputs = _outputs(asked, cell, run)
    head = _head(cell, flushed, before, _page(asked.adapter), asked.adapter)
    write_cell(asked.folder, number, head, outputs)
    return outputs, run


def _require_asked(run: LoadRun, cell: Cell) -> None:
    """InvalidMeasurement where the server, or the client, is gone: its cells are asked on --resume."""
    if not run.whole:
        why = next((end.error or end.why for end in run.ends if end.why != Why.DONE), "")
        raise InvalidMeasurement(f"{cell.name}: {why or run.connect_problem}: --resume goes on")


def _flushed(adapter: GenericAdapter | None) -> bool:
    try:
        return adapter is not None and adapter.flush_caches()
    except ServerCallFailed:
        return False


def _page(adapter: GenericAdapter | None) -> Mapping[str, float]:
    """The server's metrics now; nothing where it has none."""
    try:
        sample = adapter.scrape() if adapter is not None else None
    except ServerCallFailed:
        return {}
    return sample.values if sample is not None else {}


def _head(
    cell: Cell,
    flushed: bool | None,
    before: Mapping[str, float],
    after: Mapping[str, float],
    adapter: GenericAdapter | None,
) -> CellDocument:
    hits, looked_up = _cache(adapter, before, after)
    return CellDocument(cell, flushed, grown(before, after), hits, looked_up)


def _cache(
    adapter: GenericAdapter | None, before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[float | None, float | None]:
    """Hits and look-ups of the server's content or prefix cache meanwhile; None where it does not say."""
    if adapter is None or not after:
        return None, None
    grown_page = {key: after[key] - before.get(key, 0.0) for key in after}
    names = adapter.names
    return total(grown_page, names.prefix_hits), total(grown_page, names.prefix_queries)


def _load_plan(asked: Asked, cell: Cell, number: int) -> LoadPlan:
    items = items_in(cell, len(asked.items))
    endpoint = asked.endpoint
    choice = EndpointChoice(endpoint.name, endpoint.model, endpoint.path, cell.stream, endpoint.options)
    return LoadPlan(
        folder=_new_load(asked.folder, number),
        target=target_for(asked.url, asked.headers),
        endpoint=choice,
        items=asked.items_at,
        load=Load(concurrency=cell.concurrency),
        extent=Extent(requests=items, drain_s=DRAIN_S),
        timeouts=asked.plan.timeouts,
        keep_wire=True,
    )


def _new_load(arm: Path, number: int) -> Path:
    """A folder of its own for each time that a cell is asked."""
    again = 1
    while (path := arm / LOAD / f"{number:03}-{again}").exists():
        again += 1
    return path


def _outputs(asked: Asked, cell: Cell, run: LoadRun) -> list[Output]:
    """One output an item, in the order of asking, from the wire; the wire's log then goes."""
    endpoint, losses = endpoint_for(asked.endpoint), list[Loss]()
    wire = wire_path(run.folder, 0)
    answers: dict[tuple[int, int], Reading | None] = {}
    records: list[RequestRecord] = []
    for recorded in read_wire(wire, losses):
        record = record_of(recorded, endpoint)
        records.append(record)
        answers[record.sequence, record.attempt] = endpoint.read(recorded.answer) if record.ok else None
    wire.unlink()
    by_item = {item.id: item for item in asked.items}
    return [
        _output(record, cell, by_item[record.item], answers[record.sequence, record.attempt])
        for record in last_attempts(records)
    ]


def _output(record: RequestRecord, cell: Cell, item: Item, answer: Reading | None) -> Output:
    """Every view of the answer that there is: its ids, its text, its sound."""
    payloads: list[Payload] = []
    if answer is not None and answer.token_ids:
        payloads.append(ids_payload(Kind.TOKENS, list(answer.token_ids)))
    if record.ok and record.text:
        payloads.append(text_payload(record.text))
    if answer is not None and answer.sound is not None:
        payloads.append(_sound_payload(answer.sound))
    return Output(
        item=item.id,
        cell=cell.name,
        payloads=tuple(payloads),
        finish_reason=record.finish_reason,
        error="" if record.ok else f"{record.outcome}: {record.error}",
        expected=item.expected,
        tokens=record.usage.completion_tokens,
    )


def _sound_payload(sound: Sound) -> Payload:
    """Samples; bytes as they are where the format says nothing of samples (mp3, opus)."""
    if sound.rate_hz is None:
        return Payload(Kind.ARRAY, sound.data, "u1", (len(sound.data),))
    return pcm_payload(sound.data, sound.dtype, sound.channels, sound.rate_hz)
