"""How long a step takes on the device at each batch size: what a bigger batch costs.

Rows exist only for steps whose annotation carries a batch size; no trace gives them otherwise. The time of a
step runs from its first operation's start to its last one's end, so it holds idle time; the busy time
does not.
"""

from __future__ import annotations

import numpy as np

from layers.layer1_gpu_busy.grouped import union_length
from layers.layer1_gpu_busy.model import BatchRow, Steps
from layers.layer1_gpu_busy.steps import NO_STEP, step_of_operations
from parsers.trace_model import I64, DeviceOps, DeviceTrace


def batch_table(trace: DeviceTrace, ops: DeviceOps, steps: Steps) -> tuple[BatchRow, ...]:
    """Medians over the steps with operations of each (kind, batch size), by kind and size."""
    busy_ns = busy_per_step(trace, ops, steps)
    members: dict[tuple[str, int], list[int]] = {}
    for i, step in enumerate(steps.steps):
        if step.batch_size is not None and step.operations:
            members.setdefault((step.kind, step.batch_size), []).append(i)
    return tuple(_row(*key, members[key], steps, busy_ns) for key in sorted(members))


def busy_per_step(trace: DeviceTrace, ops: DeviceOps, steps: Steps) -> I64:
    """Union of the operations of each step; shape (steps,)."""
    step = step_of_operations(trace, ops, steps)
    mine = step != NO_STEP
    return union_length(step[mine], ops.start_ns[mine], ops.end_ns[mine], len(steps.steps))


def _row(kind: str, batch_size: int, members: list[int], steps: Steps, busy_ns: I64) -> BatchRow:
    chosen = [steps.steps[i] for i in members]
    return BatchRow(
        kind=kind,
        batch_size=batch_size,
        steps=len(chosen),
        p50_ns=float(np.median([s.end_ns - s.start_ns for s in chosen])),
        busy_p50_ns=float(np.median(busy_ns[members])),
        operations_p50=float(np.median([s.operations for s in chosen])),
    )
