"""All idle time of a device: how much, why (idle_causes.py), where (idle_places.py), and the longest gaps.

Idle is what no stream covers; the gaps of single streams, which other tools report, are a second and separate
figure (`stream_waits`): another stream may have been busy meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import numpy as np

from layers.layer1_gpu_busy.grouped import reach
from layers.layer1_gpu_busy.host_stack import innermost_name, spans_of
from layers.layer1_gpu_busy.idle_causes import split_by_cause
from layers.layer1_gpu_busy.idle_gaps import NO_OP, DeviceGaps, device_gaps
from layers.layer1_gpu_busy.idle_model import Cause, Gap, IdleAnatomy, Place, StreamWait
from layers.layer1_gpu_busy.idle_places import split_by_place
from layers.layer1_gpu_busy.model import Steps, Window
from layers.layer1_gpu_busy.runtime_calls import Launched, launched_by
from parsers.chrome_categories import Role
from parsers.trace_model import I64, NO_STREAM, DeviceOps, DeviceTrace

LARGEST_GAPS = 10
"""As many gaps as a reader looks at one by one."""

KERNEL_WAIT_BELOW_NS = 30_000
"""HTA's `consecutive_kernel_delay` of 30, which its documentation gives in ns and its code applies to µs."""

NO_THREAD = -1

_Word = TypeVar("_Word", bound=StrEnum)


def idle_anatomy(trace: DeviceTrace, ops: DeviceOps, steps: Steps, window: Window) -> IdleAnatomy:
    """The idle time of one device inside the window, split twice; each split sums to it exactly."""
    launched = launched_by(trace, ops)
    idle = device_gaps(ops, window)
    causes = split_by_cause(trace, ops, launched, idle)
    places = split_by_place(trace, ops, steps, idle)
    return IdleAnatomy(
        idle_ns=int(idle.length_ns.sum()),
        gaps=len(idle),
        median_gap_ns=float(np.median(idle.length_ns)) if len(idle) else None,
        by_cause_ns={cause: int(part.sum()) for cause, part in causes.items()},
        by_place_ns={place: int(part.sum()) for place, part in places.items()},
        largest=_largest(trace, ops, launched, idle, causes, places),
    )


def stream_waits(trace: DeviceTrace, ops: DeviceOps) -> tuple[StreamWait, ...]:
    """Gaps between neighbours on each stream, as HTA classes them; one row per stream, by stream.

    Overlapping neighbours leave no gap. Without its launch in the trace an operation cannot show a host wait.
    """
    launched = launched_by(trace, ops)
    on_stream = np.flatnonzero(ops.stream != NO_STREAM)
    r = reach(ops.stream[on_stream], ops.start_ns[on_stream], ops.end_ns[on_stream])
    rows = on_stream[r.order]
    gap_ns = np.maximum(r.start_ns - r.reach_ns, 0)
    host = launched.known[rows] & (launched.start_ns[rows] > r.reach_ns)
    kernel = ~host & (gap_ns < KERNEL_WAIT_BELOW_NS)
    waits = []
    streams, first, length = np.unique(ops.stream[rows], return_index=True, return_counts=True)
    for stream, low, high in zip(streams, first, first + length, strict=True):
        gap, late, brief = gap_ns[low:high], host[low:high], kernel[low:high]
        parts = (int(gap[chosen].sum()) for chosen in (late, brief, ~late & ~brief))
        waits.append(StreamWait(int(stream), int((gap > 0).sum()), *parts))
    return tuple(waits)


def _largest(
    trace: DeviceTrace,
    ops: DeviceOps,
    launched: Launched,
    idle: DeviceGaps,
    causes: Mapping[Cause, I64],
    places: Mapping[Place, I64],
) -> tuple[Gap, ...]:
    """The longest gaps, longest first, each with its largest part as its cause and place."""
    spans = spans_of(trace, Role.OPERATOR, Role.ANNOTATION, Role.PYTHON)
    rows = np.argsort(-idle.length_ns, kind="stable")[:LARGEST_GAPS]
    found = []
    for i in rows:
        after, middle_ns = int(idle.after[i]), int(idle.start_ns[i] + idle.length_ns[i] // 2)
        thread = int(launched.track_id[after]) if after != NO_OP and launched.known[after] else NO_THREAD
        found.append(
            Gap(
                start_ns=int(idle.start_ns[i]),
                end_ns=int(idle.end_ns[i]),
                cause=_chief(causes, i),
                place=_chief(places, i),
                after_op=_op_name(trace, ops, int(idle.before[i])),
                before_op=_op_name(trace, ops, after),
                host_op=innermost_name(trace, spans, thread, middle_ns),
                host_call=innermost_name(trace, launched.calls.spans, thread, middle_ns),
            )
        )
    return tuple(found)


def _chief(parts: Mapping[_Word, I64], gap: int) -> _Word:
    return max(parts, key=lambda word: parts[word][gap])


def _op_name(trace: DeviceTrace, ops: DeviceOps, op: int) -> str:
    return "" if op == NO_OP else trace.names[ops.name_id[op]]
