"""A short stretch of a trace, made small enough to be drawn: one step, its streams, its gaps by cause.

The step drawn is the one of median length among the middle ones: first steps warm up and last ones are cut.
Without steps it is the middle tenth of the device window.
"""

from __future__ import annotations

import numpy as np

from layers.evidence.intervals import clip, union
from layers.layer1_gpu_busy.idle_causes import split_by_cause
from layers.layer1_gpu_busy.idle_gaps import device_gaps
from layers.layer1_gpu_busy.model import Cause, Step, Steps, Strip, StripGap, Window
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.chrome_model import ChromeTrace, DeviceOps

RESOLUTION = 1000
"""Neighbours closer than this part of the strip are drawn as one: below a pixel."""
MAX_LANES = 8


def draw_strip(trace: ChromeTrace, ops: DeviceOps, steps: Steps, window: Window) -> Strip | None:
    """The strip of one device, None where its window has no length."""
    what, start_ns, end_ns = _stretch(steps, window)
    if end_ns <= start_ns:
        return None
    inside = ops.select((ops.end_ns > start_ns) & (ops.start_ns < end_ns))
    return Strip(
        what, start_ns, end_ns, _lanes(inside, start_ns, end_ns), _gaps(trace, ops, start_ns, end_ns)
    )


def _stretch(steps: Steps, window: Window) -> tuple[str, int, int]:
    typical = _typical([s for s in steps.steps if s.end_ns > s.start_ns])
    if typical is not None:
        start_ns, end_ns = max(typical.start_ns, window.start_ns), min(typical.end_ns, window.end_ns)
        return f"step {typical.name}", start_ns, end_ns
    tenth = window.length_ns // 10
    middle = window.start_ns + window.length_ns // 2
    return "the middle tenth of the device window", middle - tenth // 2, middle + tenth // 2


def _typical(steps: list[Step]) -> Step | None:
    if not steps:
        return None
    inner = steps[1:-1] if len(steps) > 2 else steps
    return sorted(inner, key=lambda s: s.end_ns - s.start_ns)[(len(inner) - 1) // 2]


def _lanes(ops: DeviceOps, start_ns: int, end_ns: int) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
    grain = max((end_ns - start_ns) // RESOLUTION, 1)
    streams, counts = np.unique(ops.stream, return_counts=True)
    busiest = streams[np.argsort(-counts, kind="stable")][:MAX_LANES]
    lanes = []
    for stream in sorted(busiest.tolist()):
        mine = ops.stream == stream
        busy = clip(union(ops.start_ns[mine], ops.end_ns[mine]), start_ns, end_ns)
        joined = union(busy.start, busy.end + grain)
        pairs = zip(joined.start.tolist(), (joined.end - grain).tolist(), strict=True)
        lanes.append((int(stream), tuple(pairs)))
    return tuple(lanes)


def _gaps(trace: ChromeTrace, ops: DeviceOps, start_ns: int, end_ns: int) -> tuple[StripGap, ...]:
    """The gaps that can be seen in the strip, each with the cause that took most of it."""
    idle = device_gaps(ops, Window("strip", start_ns, end_ns))
    visible = idle.length_ns >= max((end_ns - start_ns) // RESOLUTION, 1)
    parts = split_by_cause(trace, ops, launched_by(trace, ops), idle)
    causes = list(Cause)
    chief = np.argmax(np.stack([parts[cause] for cause in causes]), axis=0) if len(idle) else np.empty(0, int)
    return tuple(
        StripGap(int(idle.start_ns[i]), int(idle.end_ns[i]), causes[chief[i]])
        for i in np.flatnonzero(visible)
    )
