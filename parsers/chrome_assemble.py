"""From decoded parts to the tables of a `DeviceTrace`.

Ids of names, categories and tracks are given in the order of their text, and rows are sorted by start, then
by place in the file: the same file gives the same tables, whoever decoded which piece of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from parsers.chrome_around import parse_around
from parsers.chrome_categories import ROLE_OF, Role
from parsers.chrome_columns import DEVICE_COLUMNS, HOST_COLUMNS, Chunk, Column, concatenate, translate
from parsers.chrome_lacking import PHASES, Lack, lacks_bracket, losses_of_lacks
from parsers.chrome_lanes import move_device_lanes
from parsers.chrome_meta import find_producer, read_meta
from parsers.chrome_parts import Fault, Parts
from parsers.chrome_ranges import close_ranges
from parsers.chrome_sequential import Ending
from parsers.chrome_unmeasured import NS_PER_US, note_unmeasured
from parsers.loss import Loss
from parsers.trace_model import (
    CategoryCount,
    Collective,
    DeviceOps,
    DeviceTrace,
    GemmShape,
    HostSpans,
    Track,
)


def assemble(
    path: str,
    busy_only: bool,
    sparsely: bool,
    before: bytes,
    ending: Ending,
    sha256: str,
    size_bytes: int,
) -> DeviceTrace:
    """The tables of one file; `before` is the text in front of its event array, `sparsely`: not all of the
    events were decoded.
    """
    parts = ending.parts
    around, losses = parse_around(before, ending.after, ending.after_offset, ending.text_bytes)
    for loss in losses:
        parts.lose(loss)
    close_ranges(parts)
    producer = find_producer(parts, around)
    moved = move_device_lanes(parts, _tracks(parts))
    names, name_ids = _in_order(list(parts.names))
    categories, category_ids = _in_order(list(parts.categories))
    tracks, track_ids = _in_order(_tracks(parts))
    ids = {"name_id": name_ids, "category_id": category_ids, "track_id": track_ids}
    device = _once(parts, _sorted(translate(concatenate(parts.device, DEVICE_COLUMNS), ids)))
    note_unmeasured(parts, device)
    host = _sorted(translate(concatenate(parts.host, HOST_COLUMNS), ids))
    fractions = bool((device["start_ns"] % NS_PER_US).any() or (host["start_ns"] % NS_PER_US).any())
    return DeviceTrace(
        path=path,
        sha256=sha256,
        size_bytes=size_bytes,
        text_bytes=ending.text_bytes,
        busy_only=busy_only,
        meta=read_meta(around, producer, fractions=fractions),
        names=names,
        categories=categories,
        tracks=tracks,
        inventory=_inventory(parts, moved),
        device_ops=DeviceOps(**device),
        host=HostSpans(**host),
        gemms=_gemms(parts, name_ids, track_ids),
        collectives=sorted(parts.collectives, key=attrgetter(*Collective.__slots__)),
        recorded_ns=_recorded(parts, host, categories, sparsely),
        zero_timestamps=dict(sorted(parts.zero_timestamps.items())),
        device_processes=_device_processes(parts),
        losses=_losses(parts, _lacks(parts, names, device, host, track_ids)),
    )


def _in_order(values: list[Any]) -> tuple[list[Any], Column]:
    """The different values by their text, and the new id of each old one."""
    ordered = sorted(set(values), key=str)
    place = {value: i for i, value in enumerate(ordered)}
    return ordered, np.array([place[value] for value in values], np.int32)


def _sorted(table: Chunk) -> Chunk:
    """By start; of rows that start together the longest first, so that an enclosing span precedes its
    parts.
    """
    order = np.lexsort((-table["end_ns"], table["start_ns"]))
    return {name: table.pop(name)[order] for name in list(table)}


def _once(parts: Parts, device: Chunk) -> Chunk:
    """Each operation once: a row that repeats another in every column is the same operation, written twice (a
    file merged with itself). Instants, and rows without a correlation id to tell them apart, are left alone.
    """
    start_ns, end_ns = device["start_ns"], device["end_ns"]
    again = (start_ns[1:] == start_ns[:-1]) & (end_ns[1:] == end_ns[:-1]) & (end_ns[1:] > start_ns[1:])
    near = (np.append(again, False) | np.append(False, again)) & (device["correlation"] > 0)
    rows = np.flatnonzero(near)
    if not len(rows):
        return device
    columns = np.stack([device[name][rows].astype(np.int64) for name in DEVICE_COLUMNS], axis=1)
    _, first = np.unique(columns, axis=0, return_index=True)
    extra = np.setdiff1d(rows, rows[first])
    if not len(extra):
        return device
    parts.faults[Fault("device operations written twice: counted once", False, dropped=False)] += len(extra)
    return {name: np.delete(column, extra) for name, column in device.items()}


def _device_processes(parts: Parts) -> dict[int, tuple[str, ...]]:
    """The process ids of each device as text, by device."""
    ids: dict[int, set[str]] = {}
    for device, process in parts.device_processes:
        ids.setdefault(device, set()).add(str(process))
    return {device: tuple(sorted(of)) for device, of in sorted(ids.items())}


def _tracks(parts: Parts) -> list[Track]:
    def label(key: str) -> str:
        return parts.labels.get(key, (0, ""))[1]

    return [Track(str(pid), str(tid), label(f"{pid}"), label(f"{pid}/{tid}")) for pid, tid in parts.tracks]


def _gemms(parts: Parts, name_ids: Column, track_ids: Column) -> list[GemmShape]:
    gemms = [
        replace(g, name_id=int(name_ids[g.name_id]), track_id=int(track_ids[g.track_id])) for g in parts.gemms
    ]
    return sorted(gemms, key=attrgetter("start_ns", "end_ns", "track_id", "dims_json"))


def _inventory(parts: Parts, moved: int) -> list[CategoryCount]:
    rows = []
    for (category, phase), events in sorted(parts.counts.items(), key=lambda item: (-item[1], item[0])):
        role = ROLE_OF.get(category, Role.UNKNOWN_DEVICE if parts.device_like[category] else Role.UNKNOWN)
        rows.append(CategoryCount(category, phase, events, str(role)))
    if moved:
        rows.append(CategoryCount("", "X", moved, f"{Role.DEVICE} (by the name of its lane)"))
    return rows


def _recorded(parts: Parts, host: Chunk, categories: Sequence[str], sparsely: bool) -> tuple[int, int] | None:
    """The recorded window: the profiler's own span, else first to last event (unknown where not all were
    decoded).
    """
    profiler = [i for i, category in enumerate(categories) if ROLE_OF.get(category) is Role.PROFILER]
    spans = np.flatnonzero(np.isin(host["category_id"], profiler))
    if len(spans):
        start, end = int(host["start_ns"][spans].min()), int(host["end_ns"][spans].max())
        if end > start:
            return start, end
    if sparsely or parts.first_ns is None or parts.last_ns is None:
        return None
    return parts.first_ns, max(parts.last_ns, parts.window_end_ns or parts.last_ns)


def _losses(parts: Parts, lacks: Iterable[Loss]) -> list[Loss]:
    """All losses in file order, then what few events lack and the faults of single values."""
    losses = sorted(parts.losses.values(), key=lambda loss: (loss.offset, loss.what))
    faults = [
        Loss(f"{n:,} {fault.what}", -1, 0, n if fault.dropped else 0, fault.may_hide_device_work)
        for fault, n in sorted(parts.faults.items())
    ]
    full = [kind for kind in (parts.names, parts.categories, parts.tracks) if kind.overflowed]
    what = "too many different names, categories or threads to keep apart: the rest share one"
    return [*losses, *lacks, *faults, *([Loss(what, -1, 0, 0, False)] if full else [])]


def _lacks(parts: Parts, names: Sequence[str], device: Chunk, host: Chunk, track_ids: Column) -> list[Loss]:
    """What a few events lack that the others of the file have."""
    nameless = [i for i, key in enumerate(parts.tracks) if None in key]
    found = {
        **parts.lacking,
        Lack.PHASE: sum(n for (_, phase), n in parts.counts.items() if phase not in PHASES),
        Lack.TRACK: int(np.isin(host["track_id"], track_ids[nameless]).sum()) if nameless else 0,
        Lack.BRACKET: _without_bracket(names, device["name_id"]),
    }
    complete = sum(n for (_, phase), n in parts.counts.items() if phase == "X")
    operations = len(device["start_ns"])
    of = {
        Lack.PHASE: sum(parts.counts.values()),
        Lack.TRACK: len(host["start_ns"]),
        **dict.fromkeys((Lack.NAME, Lack.TIME, Lack.DURATION), complete),
        **dict.fromkeys((Lack.STREAM, Lack.OPERATION_ID, Lack.BRACKET), operations),
    }
    return losses_of_lacks(found, of)


def _without_bracket(names: Sequence[str], name_id: Column) -> int:
    different, times = np.unique(name_id, return_counts=True)
    return sum(n for i, n in zip(different.tolist(), times.tolist(), strict=True) if lacks_bracket(names[i]))
