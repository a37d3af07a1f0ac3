"""Copies by direction: how long they ran, how much of it no kernel hid, and how many bytes moved.

Times are lengths of unions, so copies that run at once on two streams count once, and what is exposed
can never pass what ran.
"""

from __future__ import annotations

import numpy as np

from layers.evidence.intervals import subtract, total
from layers.layer1_gpu_busy.busy import busy_time, kernel_time
from layers.layer1_gpu_busy.copy_names import direction_of, is_to_host
from layers.layer1_gpu_busy.model import CopyRow
from parsers.trace_model import MEMCPY, UNKNOWN_BYTES, Bools, DeviceOps, DeviceTrace


def exposed_ns(ops: DeviceOps, copies: Bools) -> int:
    """For how long one of these copies ran and no kernel of the device did."""
    return total(subtract(busy_time(ops.select(copies)), kernel_time(ops)))


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
