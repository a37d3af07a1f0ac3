"""Does the host keep the device fed? Launch calls, their delays, and how much work was queued at each.

A call inside another launch call of its thread (a driver call that the runtime makes) counts once, with the
outer one. A delay is the time from the start of a call to the start of the first operation that it launched:
short and steady delays with an empty queue mean that the device waits for the host, long ones that the host
is ahead (NVIDIA's nsys guidance). Graph replays count as one launch, however many operations they hold.
"""

from __future__ import annotations

import numpy as np

from layers.layer1_gpu_busy.host_stack import are_outermost
from layers.layer1_gpu_busy.model import LaunchStats
from layers.layer1_gpu_busy.runtime_calls import (
    NO_CALL,
    Calls,
    Launched,
    Purpose,
    ids_of_several_calls,
    launched_by,
)
from parsers.trace_model import I64, KERNEL, Bools, DeviceOps, DeviceTrace

NS_PER_S = 1_000_000_000


def launch_statistics(trace: DeviceTrace, ops: DeviceOps) -> LaunchStats:
    """Launch calls of one device against its operations; a field is None where nothing can be measured."""
    launched = launched_by(trace, ops)
    calls = launched.calls.spans
    mine = np.flatnonzero(_launch_calls(trace, launched))
    duration_ns = calls.end_ns[mine] - calls.start_ns[mine]
    first_op, length = _first_operations(launched)
    delay_ns = ops.start_ns[first_op] - launched.start_ns[first_op]
    depth = queue_depth(ops, launched, launched.start_ns[first_op])
    correlated = int(launched.known.sum())
    return LaunchStats(
        launches=len(mine),
        correlated_ops=correlated,
        uncorrelated_ops=len(ops) - correlated,
        rate_per_s=_rate_per_s(calls.start_ns[mine]),
        delay_p50_ns=_percentile(delay_ns, 50),
        delay_p90_ns=_percentile(delay_ns, 90),
        call_p50_ns=_percentile(duration_ns, 50),
        call_p99_ns=_percentile(duration_ns, 99),
        queue_depth_p50=_percentile(depth, 50),
        queue_depth_max=int(depth.max()) if len(depth) else None,
        empty_queue_share=float((depth == 0).mean()) if len(depth) else None,
        shorter_than_call_share=_shorter_than_call(ops, launched, first_op[length == 1]),
        clocks=launched.clocks,
        shared_ids=ids_of_several_calls(trace),
        tied_launches=len(first_op),
    )


def queue_depth(ops: DeviceOps, launched: Launched, at_ns: I64) -> I64:
    """Operations launched before each moment and not finished then; without a launch, from their start on."""
    queued_ns = np.where(launched.known, launched.start_ns, ops.start_ns)
    # Clocks of host and device may disagree by a little: nothing leaves the queue before it came.
    done_ns = np.maximum(ops.end_ns, queued_ns + 1)
    came = np.searchsorted(np.sort(queued_ns), at_ns, side="left")
    return came - np.searchsorted(np.sort(done_ns), at_ns, side="right")


def _launch_calls(trace: DeviceTrace, launched: Launched) -> Bools:
    """Outermost launch calls that put work on this device, or may have.

    A call with recorded operations belongs to their device. A kernel or graph launch without any (an
    unrecorded replay) counts where its thread launches for this device and for no other. Copies and sets
    without any had no bytes to move (libraries make such calls) and do not count.
    """
    calls = launched.calls
    here = _marked(calls, launched.call)
    anywhere = _marked(calls, launched_by(trace, trace.device_ops).call)
    here_tracks = calls.spans.track_id[here]
    other_tracks = calls.spans.track_id[anywhere & ~here]
    alone = np.isin(calls.spans.track_id, np.setdiff1d(here_tracks, other_tracks)) | ~anywhere.any()
    candidates = np.flatnonzero(here | (calls.are(Purpose.LAUNCH, Purpose.GRAPH_LAUNCH) & ~anywhere & alone))
    return _marked(calls, candidates[are_outermost(calls.spans.select(candidates))])


def _marked(calls: Calls, chosen: I64) -> Bools:
    """The mask of the chosen calls; NO_CALL chooses none."""
    mask = np.zeros(len(calls.spans), bool)
    mask[chosen[chosen != NO_CALL]] = True
    return mask


def _first_operations(launched: Launched) -> tuple[I64, I64]:
    """For each call with operations, in call order: its first operation and how many it launched."""
    rows = np.flatnonzero(launched.known)
    _, first, length = np.unique(launched.call[rows], return_index=True, return_counts=True)
    return rows[first], length


def _shorter_than_call(ops: DeviceOps, launched: Launched, op: I64) -> float | None:
    """Share of kernels launched one by one that ran for less time than their call took (HTA's measure)."""
    op = op[ops.kind[op] == KERNEL]
    if not len(op):
        return None
    call_ns = launched.end_ns[op] - launched.start_ns[op]
    return float((ops.end_ns[op] - ops.start_ns[op] < call_ns).mean())


def _rate_per_s(start_ns: I64) -> float | None:
    """Launches per second between the first and the last; `start_ns` ascends."""
    if len(start_ns) < 2 or start_ns[-1] == start_ns[0]:
        return None
    return (len(start_ns) - 1) * NS_PER_S / float(start_ns[-1] - start_ns[0])


def _percentile(values: I64, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
