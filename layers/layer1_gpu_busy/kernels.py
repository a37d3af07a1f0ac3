"""Which kernels take the device's time: one row per name, longest first.

The time of a name is the plain sum of its durations, as every profiler's table has it, so shares of all
names may pass 1 where streams overlap; the busy ratio itself is never made from them (see busy.py).
Names are kept whole: two template instances of one kernel are two rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.layer1_gpu_busy.kernel_groups import GROUPS, group_codes
from layers.layer1_gpu_busy.model import KernelRow
from parsers.trace_model import I64, DeviceOps, DeviceTrace

TOP_KERNELS = 30
"""Rows that a reader looks through; the table says that there are more when there are."""


@dataclass(frozen=True, slots=True)
class NameTotals:
    """Operations gathered by name; arrays of shape (names,), in the order of `name_id`."""

    name_id: I64
    n: I64
    total_ns: I64
    max_ns: I64
    median_ns: np.ndarray[tuple[int], np.dtype[np.float64]]
    first_op: I64
    """index of one operation of each name"""


def name_totals(ops: DeviceOps) -> NameTotals:
    """Count, sum, maximum and median of the durations of each name; O(n log n)."""
    duration = ops.end_ns - ops.start_ns
    order = np.lexsort((duration, ops.name_id))
    name_id, first, n = np.unique(ops.name_id[order], return_index=True, return_counts=True)
    ranked = duration[order]
    low, high = ranked[first + (n - 1) // 2], ranked[first + n // 2]
    sums = np.concatenate(([0], np.cumsum(ranked)))
    total = sums[first + n] - sums[first]
    return NameTotals(
        name_id.astype(np.int64), n, total, ranked[first + n - 1], (low + high) / 2, order[first]
    )


def kernel_table(
    trace: DeviceTrace, ops: DeviceOps, busy_ns: int, top: int | None = TOP_KERNELS
) -> tuple[KernelRow, ...]:
    """The `top` names (None: all) of one device by summed time; shares are of its union `busy_ns`."""
    totals = name_totals(ops)
    codes = group_codes(trace, ops)
    longest = np.lexsort((totals.name_id, -totals.total_ns))[:top]
    return tuple(
        KernelRow(
            name=trace.names[totals.name_id[i]],
            group=str(GROUPS[codes[totals.first_op[i]]]),
            n=int(totals.n[i]),
            total_ns=int(totals.total_ns[i]),
            share=float(totals.total_ns[i] / busy_ns) if busy_ns else 0.0,
            median_ns=float(totals.median_ns[i]),
            max_ns=int(totals.max_ns[i]),
        )
        for i in longest
    )
