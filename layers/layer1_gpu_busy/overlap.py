"""How much of the communication computation hides.

Both sides are unions of kernel intervals on one device, told apart by name (kernel_groups.py). Copies hide
nothing here: they compute nothing. A collective's duration holds the time that it waited for the last rank to
arrive, so exposed communication is not bandwidth: a straggler on another rank looks the same (see ranks.py).
"""

from __future__ import annotations

from layers.evidence.intervals import intersect, total
from layers.layer1_gpu_busy.busy import busy_time, kernel_time
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import Overlap
from parsers.trace_model import Bools, DeviceOps, DeviceTrace

EXPOSED_SHARE = 0.05
"""Of the window: TraceLens's limit of exposed communication, up to which it is not worth a word."""


def communication_overlap(trace: DeviceTrace, ops: DeviceOps) -> Overlap | None:
    """Communication against computation of one device; None when it ran no communication kernel."""
    return overlap_of(ops, in_groups(group_codes(trace, ops), [KernelGroup.COMMUNICATION]))


def overlap_of(ops: DeviceOps, communicates: Bools) -> Overlap | None:
    """The same for any choice of operations taken as communication; the other kernels are computation."""
    if not communicates.any():
        return None
    communication = busy_time(ops.select(communicates))
    computation = kernel_time(ops.select(~communicates))
    both_ns = total(intersect(communication, computation))
    return Overlap(
        communication_ns=total(communication),
        computation_ns=total(computation),
        both_ns=both_ns,
        exposed_communication_ns=total(communication) - both_ns,
        communication_ops=int(communicates.sum()),
    )
