"""The idle stretches of a whole device, and the operations on either side of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.evidence.intervals import gaps, union
from layers.layer1_gpu_busy.model import Window
from parsers.trace_model import I64, DeviceOps

NO_OP = -1


@dataclass(frozen=True, slots=True)
class DeviceGaps:
    """Stretches of a window in which no stream ran anything, ascending, disjoint; arrays of shape (gaps,).

    `before` and `after` index the operations: the last to end up to the gap, the first to start from its end
    on (that one ended the idle time); NO_OP where there is none. Operations of zero length end no gap.
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
    lasting = np.flatnonzero(ops.end_ns > ops.start_ns)
    by_end = lasting[np.argsort(ops.end_ns[lasting], kind="stable")]
    before = np.searchsorted(ops.end_ns[by_end], idle.start, side="right") - 1
    after = np.searchsorted(ops.start_ns[lasting], idle.end, side="left")
    return DeviceGaps(
        idle.start, idle.end, np.append(by_end, NO_OP)[before], np.append(lasting, NO_OP)[after]
    )
