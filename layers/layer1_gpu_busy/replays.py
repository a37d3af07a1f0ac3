"""Graph replays: are the operations that they ran in the trace at all?

All operations of a replay carry the correlation id of the call that launched it. A launch under which
nothing was recorded is a blind spot: the device may have been busy all the time that the replay could have
run, and it may have been idle. Both ends are stated.

A replay begins after its launch call began. It has ended when the host has waited for the whole device in a
wait that began after the launch call returned; waits for one stream prove nothing about others. A wait does
not name its device or process, so in a trace of several it proves nothing, and the replay could have run to
the end of the recording.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from layers.evidence.intervals import Intervals, total, union
from layers.layer1_gpu_busy.busy import busy_time
from layers.layer1_gpu_busy.coverage import among, outermost, tied
from layers.layer1_gpu_busy.model import ReplayCheck
from layers.layer1_gpu_busy.runtime_calls import Calls, Purpose, in_graph, runtime_calls, whole_device_waits
from parsers.trace_model import I64, DeviceOps, DeviceTrace, HostSpans

REFERENCES = 64
"""Lists of operations that a replay is compared with, the most frequent first: a bound on time, no more."""


def check_replays(trace: DeviceTrace, ops: DeviceOps) -> ReplayCheck:
    """Compare the graph launches of the trace with the operations recorded for one device (at least one).

    A launch counts for this device when its operations are on it, or on no device at all.
    """
    calls = runtime_calls(trace)
    launches = calls.spans.select(calls.are(Purpose.GRAPH_LAUNCH))
    on_this_device = tied(launches, ops)
    replayed = among(ops.correlation, launches.correlation[on_this_device])
    outer, ran_here = outermost(launches, on_this_device)
    _, ran = outermost(launches, tied(launches, trace.device_ops))
    low, high = _bounds(ops, _possible_time(trace, ops, calls, outer.select(~ran)))
    return ReplayCheck(
        launches=int(np.count_nonzero(ran_here | ~ran)),
        uncovered=int(np.count_nonzero(~ran)),
        short_replays=_short_replays(ops.select(replayed)),
        graph_ops=int(np.count_nonzero(in_graph(ops, replayed))),
        low_ratio=low,
        high_ratio=high,
    )


def _bounds(ops: DeviceOps, possible: Intervals) -> tuple[float | None, float | None]:
    """Device-op ratio with the uncovered replays taken as idle and as busy, over the device window widened
    by the time that they could have run.
    """
    seen = busy_time(ops)
    both = union(np.concatenate((seen.start, possible.start)), np.concatenate((seen.end, possible.end)))
    first_ns = int(np.concatenate((ops.start_ns, possible.start)).min())
    last_ns = int(np.concatenate((ops.end_ns, possible.end)).max())
    if last_ns == first_ns:
        return None, None
    return total(seen) / (last_ns - first_ns), total(both) / (last_ns - first_ns)


def _possible_time(trace: DeviceTrace, ops: DeviceOps, calls: Calls, uncovered: HostSpans) -> Intervals:
    """When the uncovered replays could have run."""
    end_of_trace = int(np.concatenate((ops.end_ns, uncovered.end_ns)).max())
    if trace.recorded_ns is not None:
        end_of_trace = max(end_of_trace, trace.recorded_ns[1])
    waits = whole_device_waits(trace, calls)
    next_wait = np.searchsorted(waits.start_ns, uncovered.end_ns)
    return union(uncovered.start_ns, np.append(waits.end_ns, end_of_trace)[next_wait])


def _short_replays(replayed: DeviceOps) -> int:
    """Replays that ran a part of what another ran, by the names of their operations.

    A graph runs all of its nodes every time. So a list that comes back is a graph of its own, however short:
    vLLM runs one graph per layer, and the last is a part of the others. Replays of different graph ids (files
    since 2026 have them) are not compared.
    """
    times = _lists_of_operations(replayed)
    usual = sorted(times, key=lambda each: (times[each], len(each[1])), reverse=True)[:REFERENCES]
    lists = {each: Counter(np.frombuffer(each[1], np.int32).tolist()) for each in times}
    return sum(
        any(graph == other[0] and lists[graph, names] < lists[other] for other in usual)
        for (graph, names), n in times.items()
        if n == 1
    )


def _lists_of_operations(replayed: DeviceOps) -> Counter[tuple[int, bytes]]:
    """How often each list of operations was replayed: (graph id, name ids in ascending order)."""
    by_replay = replayed.select(np.lexsort((replayed.name_id, replayed.correlation)))
    edges = _edges(by_replay.correlation)
    names, graphs = np.split(by_replay.name_id, edges), np.split(by_replay.graph_id, edges)
    pairs = zip(graphs, names, strict=True)
    return Counter((int(graph[0]), name.astype(np.int32).tobytes()) for graph, name in pairs if len(name))


def _edges(of: I64) -> I64:
    """Where a sorted array changes its value."""
    return np.flatnonzero(of[1:] != of[:-1]) + 1
