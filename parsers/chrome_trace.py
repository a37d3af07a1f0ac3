"""Read a chrome trace (Kineto / torch.profiler and relatives) into tables, in bounded memory.

The reader trusts nothing but the JSON: the compression is told by content, the layout is found, not known,
times are exact integer nanoseconds from the decimal text, and what a damaged file lost is listed. A
well-laid-out large file is decoded by all cores; any other falls back to one process. Formats and facts:
docs/traces.md.
"""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from parsers.chrome_block import NeedsSequential, Reading
from parsers.chrome_categories import DEVICE_KINDS, ROLE_OF, Role, busy_only_literals
from parsers.chrome_columns import DEVICE_COLUMNS, HOST_COLUMNS, Chunk, OpenRange, Parts, concatenate
from parsers.chrome_lanes import move_device_lanes
from parsers.chrome_layout import event_separator, parse_around
from parsers.chrome_meta import find_producer, read_meta
from parsers.chrome_model import CategoryCount, ChromeTrace, DeviceOps, HostSpans, Track
from parsers.chrome_sequential import Ending, read_beginning, read_sequentially
from parsers.chrome_workers import read_in_parallel
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.text_stream import GZIP_MAGIC, open_text

PARALLEL_FROM_BYTES = 48 << 20
"""Text size from which a second process pays for its start (about 0.2 s)."""
SPARSE_FROM_BYTES = 2 << 20
USUAL_GZIP_RATIO = 18
MAX_WORKERS = 3
"""More do not help: one process unpacks and cuts, and cannot feed more than about four decoders."""


def read_chrome_trace(
    path: str,
    *,
    busy_only: bool = False,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda offset: None,
) -> ChromeTrace:
    """Read one trace.

    `busy_only` decodes device work, graph launches and step marks alone: much faster, no host anatomy.
    `workers` is the number of further processes (None: by file size and free cores). `progress` is told the
    text offset reached. Raises UnreadableInput where the file is no chrome trace at all.
    """
    workers = _workers_for(path) if workers is None else workers
    collecting = gc.isenabled()
    gc.disable()
    try:
        trace = _read(path, busy_only, workers, progress)
        if busy_only and not len(trace.device_ops):
            trace = _read(path, False, workers, progress)
    finally:
        if collecting:
            gc.enable()
    return trace


def _workers_for(path: str) -> int:
    try:
        size = os.stat(path).st_size
        with Path(path).open("rb") as file:
            packed = file.read(2) == GZIP_MAGIC
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be read: {error.strerror}") from error
    if size * (USUAL_GZIP_RATIO if packed else 1) < PARALLEL_FROM_BYTES:
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MAX_WORKERS) if hasattr(os, "sched_getaffinity") else 1


def _read(path: str, busy_only: bool, workers: int, progress: Callable[[int], None]) -> ChromeTrace:
    try:
        return _read_once(path, busy_only, workers, progress)
    except NeedsSequential:
        return _read_once(path, busy_only, 0, progress)


def _read_once(path: str, busy_only: bool, workers: int, progress: Callable[[int], None]) -> ChromeTrace:
    stream = open_text(path)
    try:
        beginning = read_beginning(path, stream)
        reading = _how_to_read(busy_only, beginning.rest)
        if workers:
            ending = read_in_parallel(stream, beginning, reading, workers, progress)
        else:
            ending = read_sequentially(stream, beginning, reading, progress)
    finally:
        sha256, size_bytes = stream.finish()
    ending.parts.losses += stream.losses
    return _build(path, busy_only, parse_around(beginning.before, ending.after), ending, sha256, size_bytes)


def _how_to_read(busy_only: bool, head: bytes) -> Reading:
    """Sparse reading where it is asked for, allowed by the layout, and worth it (a small file is read
    whole).
    """
    if not busy_only or len(head) < SPARSE_FROM_BYTES:
        return Reading(busy_only)
    return Reading(busy_only, event_separator(head), busy_only_literals(head))


def _build(
    path: str, busy_only: bool, around: dict[str, Any], ending: Ending, sha256: str, size_bytes: int
) -> ChromeTrace:
    parts = ending.parts
    _close_ranges(parts)
    tracks = _tracks(parts)
    categories = list(parts.categories)
    moved = move_device_lanes(parts, tracks)
    device = _sorted(concatenate(parts.device, DEVICE_COLUMNS))
    host = _sorted(concatenate(parts.host, HOST_COLUMNS))
    trace = ChromeTrace(
        path=path,
        sha256=sha256,
        size_bytes=size_bytes,
        text_bytes=ending.text_bytes,
        busy_only=busy_only,
        meta=read_meta(around, find_producer(parts, tracks, around)),
        names=list(parts.names),
        categories=categories,
        tracks=tracks,
        inventory=_inventory(parts, moved),
        device_ops=DeviceOps(**device),
        host=HostSpans(**host),
        gemms=parts.gemms,
        collectives=parts.collectives,
        recorded_ns=_recorded(parts, host, categories, busy_only),
        zero_timestamps=dict(parts.zero_timestamps),
        losses=_losses(parts),
    )
    return trace


def _sorted(table: Chunk) -> Chunk:
    order = np.argsort(table["start_ns"], kind="stable")
    return {name: column[order] for name, column in table.items()}


def _tracks(parts: Parts) -> list[Track]:
    return [
        Track(str(pid), str(tid), parts.labels.get(f"{pid}", ""), parts.labels.get(f"{pid}/{tid}", ""))
        for pid, tid in parts.tracks
    ]


def _close_ranges(parts: Parts) -> None:
    """Pair begin and end events per track in file order; each pair becomes a span like any complete event."""
    open_by_track: dict[int, list[OpenRange]] = defaultdict(list)
    unmatched = 0
    for mark in sorted(parts.ranges, key=lambda r: r.order):
        stack = open_by_track[mark.track_id]
        if mark.phase == "B":
            stack.append(mark)
        elif not stack or stack[-1].ts_ns > mark.ts_ns:
            unmatched += 1
        else:
            _add_pair(parts, stack.pop(), mark.ts_ns)
    unmatched += sum(map(len, open_by_track.values()))
    if unmatched:
        parts.faults["begin or end events without a partner: dropped", True] += unmatched


def _add_pair(parts: Parts, begin: OpenRange, end_ns: int) -> None:
    parts.span(begin.ts_ns, end_ns)
    name_id = parts.names[begin.name]
    times = {
        "start_ns": np.array([begin.ts_ns]),
        "end_ns": np.array([end_ns]),
        "name_id": np.array([name_id]),
    }
    none = np.array([-1])
    if ROLE_OF.get(begin.category) is Role.DEVICE:
        kind = np.array([DEVICE_KINDS[begin.category]])
        pid = next(key for key, index in parts.tracks.items() if index == begin.track_id)[0]
        device = np.array([pid if isinstance(pid, int) else -1])
        ids = {"kind": kind, "device": device, "stream": none, "correlation": none}
        parts.device.append({**times, **ids, "graph_id": np.array([0]), "nbytes": none})
    else:
        ids = {
            "category_id": np.array([parts.categories[begin.category]]),
            "track_id": np.array([begin.track_id]),
        }
        parts.host.append({**times, **ids, "correlation": none})


def _inventory(parts: Parts, moved: int) -> list[CategoryCount]:
    rows = []
    for (category, phase), events in sorted(parts.counts.items(), key=lambda item: -item[1]):
        role = ROLE_OF.get(category, Role.UNKNOWN_DEVICE if parts.device_like[category] else Role.UNKNOWN)
        rows.append(CategoryCount(category, phase, events, str(role)))
    if moved:
        rows.append(CategoryCount("", "X", moved, f"{Role.DEVICE} (by the name of its lane)"))
    return rows


def _recorded(parts: Parts, host: Chunk, categories: list[str], busy_only: bool) -> tuple[int, int] | None:
    """The recorded window: the profiler's own span, else first to last event (unknown when not all were
    read).
    """
    profiler = [i for i, category in enumerate(categories) if ROLE_OF.get(category) is Role.PROFILER]
    spans = np.flatnonzero(np.isin(host["category_id"], profiler))
    if len(spans):
        start, end = int(host["start_ns"][spans].min()), int(host["end_ns"][spans].max())
        if end > start:
            return start, end
    if busy_only or parts.first_ns is None or parts.last_ns is None:
        return None
    return parts.first_ns, max(parts.last_ns, parts.window_end_ns or parts.last_ns)


def _losses(parts: Parts) -> list[Loss]:
    """All losses, those of one kind summed up at their first place, then the faults of single values."""
    kinds: dict[tuple[str, bool], list[Loss]] = defaultdict(list)
    for loss in parts.losses:
        kinds[loss.what, loss.may_hide_device_work].append(loss)
    summed = [
        Loss(
            what,
            min(x.offset for x in group),
            sum(x.lost_bytes for x in group),
            sum(x.lost_events for x in group),
            hides,
        )
        for (what, hides), group in kinds.items()
    ]
    faults = [
        Loss(f"{n} {what}", -1, 0, n if "dropped" in what else 0, hides)
        for (what, hides), n in parts.faults.items()
    ]
    full = (
        [Loss("too many different names: the rest share one", -1, 0, 0, False)]
        if parts.names.overflowed
        else []
    )
    return summed + faults + full
