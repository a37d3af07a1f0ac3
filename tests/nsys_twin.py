"""A slow second reading of nsys exports, row by row, to compare the reader with.

Devices are told as (process id, ordinal); nothing is mapped, sorted or cached.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

TABLES = {"kernels": "KERNEL", "replays": "GRAPH_TRACE", "copies": "MEMCPY", "sets": "MEMSET"}

Device = tuple[int, int]
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TwinDevice:
    """Rows by table, the window from first start to last end, and the lengths of two unions."""

    rows: dict[str, int]
    window_ns: int
    busy_ns: int
    kernel_ns: int


def read_twin(path: Path) -> dict[Device, TwinDevice]:
    """Every device of an export."""
    found: dict[Device, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for kind, suffix in TABLES.items():
        if (table := f"CUPTI_ACTIVITY_KIND_{suffix}") in tables:
            for start, end, device, process in connection.execute(
                f"SELECT start, end, deviceId, globalPid FROM {table}"
            ):
                found[(process >> 24) & 0xFFFFFF, device][kind].append((start, end))
    connection.close()
    return {device: _twin(intervals) for device, intervals in found.items()}


def _twin(by_kind: dict[str, list[Interval]]) -> TwinDevice:
    every = [interval for intervals in by_kind.values() for interval in intervals]
    kernels = by_kind.get("kernels", []) + by_kind.get("replays", [])
    return TwinDevice(
        rows={kind: len(by_kind.get(kind, [])) for kind in TABLES},
        window_ns=max(end for _, end in every) - min(start for start, _ in every),
        busy_ns=covered_ns(every),
        kernel_ns=covered_ns(kernels),
    )


def covered_ns(intervals: list[Interval]) -> int:
    """Length of the union: between two neighbouring edges, either some interval covers all or none does."""
    edges = sorted({edge for interval in intervals for edge in interval})
    spans = pairwise(edges)
    return sum(b - a for a, b in spans if any(start <= a and b <= end for start, end in intervals))


def launches(path: Path) -> dict[tuple[int, int], int]:
    """(process, correlation id) → start of the first call that has it."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    rows: list[Any] = connection.execute(
        "SELECT globalTid, correlationId, start FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start DESC"
    ).fetchall()
    connection.close()
    return {
        ((tid >> 24) & 0xFFFFFF, correlation): start for tid, correlation, start in rows if correlation > 0
    }
