"""Copies by direction: how long they ran, how much of it no kernel hid, and how many bytes moved.

Times are lengths of unions, so copies that run at once on two streams count once, and what is exposed
can never pass what ran. The direction is read from the operation's name, the only place that has it; a
host side of unknown kind (ROCm writes `Host`) is left unnamed, since only CUPTI tells pinned from
pageable memory.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.intervals import subtract, total
from layers.layer1_gpu_busy.busy import busy_time, kernel_time
from layers.layer1_gpu_busy.model import CopyRow
from parsers.trace_model import MEMCPY, UNKNOWN_BYTES, Bools, DeviceOps, DeviceTrace

UNKNOWN_DIRECTION = "unknown direction"
TO_HOST = "DtoH"

_SHORT = re.compile(r"\b([HDAP])to([HDAP])\b")
_LONG = re.compile(r"(Host|Device|Peer)To(Host|Device|Peer)")
_HOST_MEMORY = re.compile(r"pageable|pinned", re.IGNORECASE)
_MIGRATION = re.compile(r"Unified Memory", re.IGNORECASE)


def direction_of(name: str) -> str:
    """`DtoH pageable`, `HtoD pinned`, `DtoD`, … from the name of a copy; UNKNOWN_DIRECTION when it says
    nothing. A migration of Unified Memory is a direction of its own: no code asked for it.

    Known forms: `Memcpy DtoH (Device -> Pageable)` (CUPTI), `Memcpy HtoD (Host -> Device)` and
    `CopyDeviceToHost` (ROCm).
    """
    route = _route(name)
    if not route:
        return UNKNOWN_DIRECTION
    if _MIGRATION.search(name):
        return f"migration {route}"
    memory = _HOST_MEMORY.search(name)
    return f"{route} {memory.group(0).lower()}" if memory else route


def is_to_host(name: str) -> bool:
    """Whether a copy of this name brings device memory to the host because a program asked for it."""
    return _route(name) == TO_HOST and not _MIGRATION.search(name)


def copies_to_host(trace: DeviceTrace, ops: DeviceOps) -> Bools:
    """Which operations copy from the device to host memory; shape (n,)."""
    is_copy = ops.kind == MEMCPY
    to_host = [i for i in np.unique(ops.name_id[is_copy]) if is_to_host(trace.names[i])]
    found: Bools = is_copy & np.isin(ops.name_id, to_host)
    return found


def exposed_ns(ops: DeviceOps, copies: Bools) -> int:
    """For how long one of these copies ran and no kernel of the device did."""
    return total(subtract(busy_time(ops.select(copies)), kernel_time(ops)))


def _route(name: str) -> str:
    """`DtoH` and the like, empty where the name has none."""
    short, long = _SHORT.search(name), _LONG.search(name)
    if short:
        return short.group(0)
    return f"{long.group(1)[0]}to{long.group(2)[0]}" if long else ""


def copy_table(trace: DeviceTrace, ops: DeviceOps) -> tuple[CopyRow, ...]:
    """One row per direction for one device's copies, longest first; empty when it made none."""
    is_copy = ops.kind == MEMCPY
    name_ids = np.unique(ops.name_id[is_copy])
    directions: dict[str, list[int]] = {}
    for name_id in name_ids:
        directions.setdefault(direction_of(trace.names[name_id]), []).append(int(name_id))
    rows = [
        _row(direction, is_to_host(trace.names[ids[0]]), ops, is_copy & np.isin(ops.name_id, ids))
        for direction, ids in directions.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.direction)))


def _row(direction: str, to_host: bool, ops: DeviceOps, mine: Bools) -> CopyRow:
    recorded = ops.nbytes[mine & (ops.nbytes != UNKNOWN_BYTES)]
    return CopyRow(
        direction=direction,
        n=int(mine.sum()),
        total_ns=total(busy_time(ops.select(mine))),
        exposed_ns=exposed_ns(ops, mine),
        nbytes=int(recorded.sum()) if len(recorded) else None,
        to_host=to_host,
    )
