"""Begin and end events (`ph` B and E), paired into spans."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from parsers.chrome_categories import DEVICE_KINDS
from parsers.chrome_columns import Chunk
from parsers.chrome_parts import Fault, OpenRange, Parts
from parsers.trace_model import UNKNOWN_BYTES

Pair = tuple[OpenRange, int]
"""A begin event and the time of its end (ns)."""


def close_ranges(parts: Parts) -> None:
    """Pair begin and end events per track in file order; each pair becomes a row like any complete event."""
    open_by_track: dict[int, list[OpenRange]] = defaultdict(list)
    pairs: list[Pair] = []
    unmatched = 0
    for mark in sorted(parts.ranges, key=lambda r: r.order):
        stack = open_by_track[mark.track_id]
        if mark.phase == "B":
            stack.append(mark)
        elif not stack or stack[-1].ts_ns > mark.ts_ns:
            unmatched += 1
        else:
            pairs.append((stack.pop(), mark.ts_ns))
    unmatched += sum(map(len, open_by_track.values()))
    if unmatched:
        device_work = any(mark.category in DEVICE_KINDS for mark in parts.ranges)
        parts.faults[Fault("begin or end events without a partner: dropped", device_work)] += unmatched
    _add(parts, pairs)
    parts.ranges.clear()


def _add(parts: Parts, pairs: list[Pair]) -> None:
    device = [pair for pair in pairs if pair[0].category in DEVICE_KINDS]
    host = [pair for pair in pairs if pair[0].category not in DEVICE_KINDS]
    if pairs:
        parts.span(min(begin.ts_ns for begin, _ in pairs), max(end_ns for _, end_ns in pairs))
    if device:
        parts.device.append((device[0][0].order, {**_common(parts, device), **_device_ids(device)}))
    if host:
        parts.host.append((host[0][0].order, {**_common(parts, host), **_host_ids(parts, host)}))


def _common(parts: Parts, pairs: list[Pair]) -> Chunk:
    return {
        "start_ns": np.array([begin.ts_ns for begin, _ in pairs], np.int64),
        "end_ns": np.array([end_ns for _, end_ns in pairs], np.int64),
        "name_id": np.array([parts.names[begin.name] for begin, _ in pairs], np.int32),
        "correlation": np.array([begin.correlation for begin, _ in pairs], np.int64),
    }


def _device_ids(pairs: list[Pair]) -> Chunk:
    rows = len(pairs)
    return {
        "kind": np.array([DEVICE_KINDS[begin.category] for begin, _ in pairs], np.int8),
        "device": np.array([begin.device for begin, _ in pairs], np.int32),
        "stream": np.array([begin.stream for begin, _ in pairs], np.int64),
        "graph_id": np.zeros(rows, np.int64),
        "nbytes": np.full(rows, UNKNOWN_BYTES, np.int64),
    }


def _host_ids(parts: Parts, pairs: list[Pair]) -> Chunk:
    return {
        "category_id": np.array([parts.categories[begin.category] for begin, _ in pairs], np.int32),
        "track_id": np.array([begin.track_id for begin, _ in pairs], np.int32),
    }
