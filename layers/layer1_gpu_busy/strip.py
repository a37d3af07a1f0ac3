"""A stretch of a trace, made small enough to be drawn: one step, its streams, its idle time by cause.

The step drawn is the one of median length among the middle ones, since first steps warm up and last ones are
cut; it lasts until the next one begins. Without steps it is the whole device window. The stretch is cut into
columns, and each column holds how long every stream was busy in it and how long the device idled for which
cause. So a gap that is narrower than a column is not lost: it makes its column lower, and the columns of a
cause add up to its exact time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layers.evidence.intervals import covered, union
from layers.layer1_gpu_busy.idle_causes import split_by_cause
from layers.layer1_gpu_busy.idle_gaps import DeviceGaps, device_gaps
from layers.layer1_gpu_busy.kernel_groups import GROUPS, KernelGroup, group_codes
from layers.layer1_gpu_busy.model import DeviceAnalysis, Step, Steps, Strip, StripLane, Window, column_edges
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.trace_model import I64, DeviceOps, DeviceTrace

COLUMNS = 400
"""About two pixels each in a figure as wide as a page."""
MAX_LANES = 8
MAX_STRIPS = 8
"""A report draws the least busy device of a run. Each strip takes some 10 KB of a document."""
KIND_SHARE = 0.1
"""Work below this share of a stream's time is not named. perfkit's choice."""

WHOLE_WINDOW = "the device window"
COMPUTATION = "computation"
KINDS = {
    KernelGroup.COMMUNICATION: "communication",
    KernelGroup.MEMCPY: "copies",
    KernelGroup.MEMSET: "copies",
    KernelGroup.GRAPH: "graph replays",
}
"""What a stream runs, in words; every other group is computation."""


def drawn_devices(devices: Sequence[DeviceAnalysis]) -> list[int]:
    """The places of those that are worth a strip: the least busy ones."""
    ratios = [device.busy.device_window.device_op_ratio for device in devices]
    places = [place for place, ratio in enumerate(ratios) if ratio is not None]
    return sorted(places, key=lambda place: ratios[place] or 0.0)[:MAX_STRIPS]


def draw_strip(trace: DeviceTrace, ops: DeviceOps, steps: Steps, window: Window) -> Strip | None:
    """The strip of one device, None where its window has no length."""
    step_name, start_ns, end_ns = _stretch(steps, window)
    if end_ns <= start_ns:
        return None
    inside = ops.select((ops.end_ns > start_ns) & (ops.start_ns < end_ns))
    edges_ns = np.array(column_edges(start_ns, end_ns, COLUMNS), np.int64)
    what = f"step {step_name}" if step_name else WHOLE_WINDOW
    idle = device_gaps(ops, Window(what, start_ns, end_ns))
    parts = split_by_cause(trace, ops, launched_by(trace, ops), idle)
    narrow_ns = idle.length_ns[idle.length_ns < (end_ns - start_ns) // COLUMNS]
    return Strip(
        what=what,
        start_ns=start_ns,
        end_ns=end_ns,
        operations=len(inside),
        streams=len(np.unique(inside.stream)),
        lanes=_lanes(trace, inside, edges_ns),
        idle_ns={cause: int(part.sum()) for cause, part in parts.items()},
        idle_columns_ns={c: _spread(idle, part, edges_ns) for c, part in parts.items() if part.any()},
        gaps=len(idle),
        narrow_gaps=len(narrow_ns),
        narrow_gaps_ns=int(narrow_ns.sum()),
        step_name=step_name,
    )


def _stretch(steps: Steps, window: Window) -> tuple[str, int, int]:
    """The name of the step that is drawn (empty: no step), from when to when."""
    working = [s for s in steps.steps if s.end_ns > s.start_ns]
    if not working:
        return "", window.start_ns, window.end_ns
    next_ns = [*(s.start_ns for s in working[1:]), working[-1].end_ns]
    ends_ns = [max(step.end_ns, until) for step, until in zip(working, next_ns, strict=True)]
    step, end_ns = _typical(list(zip(working, ends_ns, strict=True)))
    return step.name, max(step.start_ns, window.start_ns), min(end_ns, window.end_ns)


def _typical(ended: Sequence[tuple[Step, int]]) -> tuple[Step, int]:
    """The step of median length among the middle ones, each given with its end."""
    inner = ended[1:-1] if len(ended) > 2 else ended
    return sorted(inner, key=lambda pair: pair[1] - pair[0].start_ns)[(len(inner) - 1) // 2]


def _lanes(trace: DeviceTrace, ops: DeviceOps, edges_ns: I64) -> tuple[StripLane, ...]:
    """The streams with most operations, by number."""
    streams, counts = np.unique(ops.stream, return_counts=True)
    busiest = streams[np.argsort(-counts, kind="stable")][:MAX_LANES]
    return tuple(_lane(trace, ops.select(ops.stream == stream), edges_ns) for stream in np.sort(busiest))


def _lane(trace: DeviceTrace, ops: DeviceOps, edges_ns: I64) -> StripLane:
    busy_ns = covered(union(ops.start_ns, ops.end_ns), edges_ns[:-1], edges_ns[1:])
    kinds = _kinds(trace, ops, int(edges_ns[0]), int(edges_ns[-1]))
    return StripLane(int(ops.stream[0]), kinds, tuple(busy_ns.tolist()))


def _kinds(trace: DeviceTrace, ops: DeviceOps, start_ns: int, end_ns: int) -> tuple[str, ...]:
    """What takes the time of one stream, most first."""
    time_ns = np.minimum(ops.end_ns, end_ns) - np.maximum(ops.start_ns, start_ns)
    by_group = np.bincount(group_codes(trace, ops), time_ns, len(GROUPS))
    by_kind: dict[str, float] = {}
    for group, ns in zip(GROUPS, by_group, strict=True):
        kind = KINDS.get(group, COMPUTATION)
        by_kind[kind] = by_kind.get(kind, 0.0) + float(ns)
    named = [kind for kind, ns in by_kind.items() if ns > KIND_SHARE * by_group.sum()]
    return tuple(sorted(named, key=lambda kind: -by_kind[kind]))


def _spread(idle: DeviceGaps, part: I64, edges_ns: I64) -> tuple[int, ...]:
    """One cause's time in each column: its part of a gap is spread over the gap, to the last nanosecond."""
    origin_ns = edges_ns[0]
    ends_ns = np.column_stack((idle.start_ns, idle.end_ns)).ravel() - origin_ns
    reached_ns = np.cumsum(np.column_stack((np.zeros_like(part), part)).ravel())
    below_ns = np.rint(np.interp(edges_ns - origin_ns, ends_ns, reached_ns)).astype(np.int64)
    return tuple(np.diff(below_ns).tolist())
