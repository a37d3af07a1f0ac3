"""The idle stretches of a whole device, and the operations on either side of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.evidence.intervals import Intervals, gaps, union
from layers.layer1_gpu_busy.model import Window
from parsers.trace_model import I64, DeviceOps

NO_OP = -1


@dataclass(frozen=True, slots=True)
class DeviceGaps:
    """Stretches of a window in which no stream ran anything, ascending, disjoint; arrays of shape (gaps,).

    `before` and `after` index the operations: the last to end up to the gap, the first to start from its end
    on (that one ended the idle time); NO_OP where there is none. An operation of zero length splits no gap,
    and stands beside one only where no lasting operation does: at the edge of the window.
    """

    start_ns: I64
    end_ns: I64
    before: I64
    after: I64

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def length_ns(self) -> I64:
        return self.end_ns - self.start_ns


def device_gaps(ops: DeviceOps, window: Window) -> DeviceGaps:
    """The part of the window that no operation covers; O(n log n)."""
    idle = gaps(union(ops.start_ns, ops.end_ns), window.start_ns, window.end_ns)
    lasting = ops.end_ns > ops.start_ns
    before, after = _around(ops, np.flatnonzero(lasting), idle)
    brief_before, brief_after = _around(ops, np.flatnonzero(~lasting), idle)
    return DeviceGaps(
        idle.start,
        idle.end,
        np.where(before == NO_OP, brief_before, before),
        np.where(after == NO_OP, brief_after, after),
    )


def _around(ops: DeviceOps, rows: I64, idle: Intervals) -> tuple[I64, I64]:
    """Of the given operations (by start) the last to end up to each stretch, the first to start after it."""
    by_end = rows[np.argsort(ops.end_ns[rows], kind="stable")]
    before = np.searchsorted(ops.end_ns[by_end], idle.start, side="right") - 1
    after = np.searchsorted(ops.start_ns[rows], idle.end, side="left")
    return np.append(by_end, NO_OP)[before], np.append(rows, NO_OP)[after]
