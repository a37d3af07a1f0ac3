"""Graph replays: are the operations that they ran in the trace at all?

All operations of a replay carry the correlation id of the call that launched it. A launch under which
nothing was recorded is a blind spot: the device may have been busy all the time that the replay could have
run, and it may have been idle. Both ends are stated. A replay could run from its launch call until the host
next waited for the whole device, at the latest until the recording ended; waits for one stream prove
nothing about others.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.intervals import Intervals, clip, total, union
from layers.layer1_gpu_busy.busy import busy_time
from layers.layer1_gpu_busy.host_stack import names_matching
from layers.layer1_gpu_busy.model import ReplayCheck
from layers.layer1_gpu_busy.runtime_calls import Purpose, runtime_calls
from parsers.chrome_model import I64, ChromeTrace, DeviceOps, HostSpans

WHOLE_DEVICE_WAIT = re.compile(r"^(cudaDevice|hipDevice|cuCtx|hipCtx|cudaThread)Synchronize")
USUAL_SHARE = 0.5
"""A node count is the usual one of a graph when at least this share of its replays have it."""


def check_replays(trace: ChromeTrace, ops: DeviceOps) -> ReplayCheck:
    """Compare the graph launches of the trace with the operations recorded for one device.

    A launch counts for this device when its operations are on it, or on no device at all.
    """
    calls = runtime_calls(trace)
    launches = calls.spans.select(calls.are(Purpose.GRAPH_LAUNCH))
    uncovered = ~np.isin(launches.correlation, trace.device_ops.correlation) | (launches.correlation <= 0)
    covered = np.isin(launches.correlation, ops.correlation) & (launches.correlation > 0)
    replayed = np.isin(ops.correlation, launches.correlation[covered])
    waits = calls.spans.select(calls.are(Purpose.SYNC))
    low, high = _bounds(trace, ops, launches.select(uncovered), waits)
    return ReplayCheck(
        launches=int(np.count_nonzero(covered | uncovered)),
        uncovered=int(np.count_nonzero(uncovered)),
        short_replays=_short_replays(ops.select(replayed)),
        graph_ops=int(np.count_nonzero(replayed | (ops.graph_id > 0))),
        low_ratio=low,
        high_ratio=high,
    )


def _bounds(
    trace: ChromeTrace, ops: DeviceOps, uncovered: HostSpans, waits: HostSpans
) -> tuple[float | None, float | None]:
    """Device-op ratio with the uncovered replays taken as idle and as busy, over the device window widened by
    the time that they could have run."""
    if not len(ops):
        return None, None
    seen = busy_time(ops)
    possible = _possible_time(trace, uncovered, waits, int(ops.end_ns.max()))
    both = union(np.concatenate((seen.start, possible.start)), np.concatenate((seen.end, possible.end)))
    first, last = int(both.start.min(initial=ops.start_ns[0])), int(both.end.max(initial=ops.end_ns.max()))
    if last <= first:
        return None, None
    return total(seen) / (last - first), total(both) / (last - first)


def _possible_time(trace: ChromeTrace, uncovered: HostSpans, waits: HostSpans, last_ns: int) -> Intervals:
    """When the uncovered replays could have run: from each launch to the end of the next whole-device
    wait.
    """
    whole = waits.select(names_matching(trace, waits, WHOLE_DEVICE_WAIT))
    end_of_trace = max(last_ns, trace.recorded_ns[1] if trace.recorded_ns else last_ns)
    next_wait = np.searchsorted(whole.start_ns, uncovered.start_ns, side="right")
    ends = np.append(whole.end_ns, end_of_trace)
    return clip(union(uncovered.start_ns, ends[next_wait]), -(1 << 62), max(end_of_trace, 0))


def _short_replays(replayed: DeviceOps) -> int:
    """Replays with fewer operations than the usual count of their graph; a graph is told by its first
    kernel.
    """
    if not len(replayed):
        return 0
    _, first, counts = np.unique(replayed.correlation, return_index=True, return_counts=True)
    graph = replayed.name_id[first]
    return sum(_below_usual(counts[graph == name]) for name in np.unique(graph))


def _below_usual(counts: I64) -> int:
    values, times = np.unique(counts, return_counts=True)
    usual = values[np.argmax(times)]
    if times.max() < USUAL_SHARE * len(counts):
        return 0
    return int(np.count_nonzero(counts < usual))
