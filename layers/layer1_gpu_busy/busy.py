"""How busy a device was: unions of intervals over named windows.

The primary window runs from the first to the last device activity, since nothing else in a trace is known
to be the time that the device was asked to work. The profiled steps and the whole recording stand beside
it, because the window decides more than anything else: one H100 trace is 99.0 % busy by the first and 41.4
% by the second.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.intervals import Intervals, clip, exact_sum, gaps, total, union
from layers.layer1_gpu_busy.host_stack import names_matching, spans_of
from layers.layer1_gpu_busy.model import (
    DEVICE_WINDOW,
    RECORDED_WINDOW,
    STEPS_WINDOW,
    DeviceBusy,
    Window,
    WindowRatio,
)
from layers.layer1_gpu_busy.runtime_calls import launched_by
from layers.layer1_gpu_busy.streams import ids_of_several_launches, measure_streams
from parsers.chrome_categories import Role
from parsers.trace_model import I32, I64, DeviceOps, DeviceTrace, TraceMeta

LONGEST_GAPS = 3
"""As many as tell whether one or two of them stand out."""
SHORTEST_KERNEL_NS = 200
"""No kernel is shorter: a device takes longer to begin and to end one. perfkit's choice; the shortest in
public traces lasts 639 ns."""
PROFILER_STEP = re.compile(r"^ProfilerStep#?\d*")


def devices_of(trace: DeviceTrace) -> list[int]:
    """The devices that the trace has operations of, ascending."""
    return _distinct(trace.device_ops.device)


def untimed_devices(trace: DeviceTrace) -> list[tuple[int, int]]:
    """The devices of which every operation lacks its time, and how many those are."""
    known = devices_of(trace)
    return [(device, n) for device, n in trace.zero_timestamps.items() if device not in known]


def ops_of(trace: DeviceTrace, device: int) -> DeviceOps:
    """The operations of one device, by start (not copied where the trace has no other)."""
    mine = trace.device_ops.device == device
    return trace.device_ops if mine.all() else trace.device_ops.select(mine)


def busy_time(ops: DeviceOps) -> Intervals:
    """When any operation ran on the device."""
    return union(ops.start_ns, ops.end_ns)


def kernel_time(ops: DeviceOps) -> Intervals:
    """When any kernel ran on the device; a replay recorded as a whole counts like one."""
    kernels = ops.runs_kernels
    return union(ops.start_ns[kernels], ops.end_ns[kernels])


def measure_busy(trace: DeviceTrace, ops: DeviceOps) -> DeviceBusy:
    """The ratios of one device (all `ops` are its own, at least one) over every window that the trace has."""
    device = int(ops.device[0])
    any_op, kernels, window = busy_time(ops), kernel_time(ops), device_window(ops)
    duration_ns = ops.end_ns - ops.start_ns
    longest = int(np.argmax(duration_ns))
    steps, recorded = steps_window(trace), trace.recorded_ns
    drained = _drained(trace, ops, steps) if steps else None
    shared, ids = ids_of_several_launches(trace, ops)
    return DeviceBusy(
        device=device,
        device_name=device_name(trace.meta, device),
        events=len(ops),
        kernels=int(np.count_nonzero(ops.runs_kernels)),
        device_window=_ratio(window, any_op, kernels),
        steps_window=_ratio(steps, any_op, kernels) if steps else None,
        recorded_window=_ratio(Window(RECORDED_WINDOW, *recorded), any_op, kernels) if recorded else None,
        sum_ns=exact_sum(duration_ns),
        longest_op_ns=int(duration_ns[longest]),
        longest_op_name=trace.names[ops.name_id[longest]],
        longest_gaps_ns=_longest_gaps(any_op, window),
        zero_timestamps=trace.zero_timestamps.get(device, 0),
        processes=len(trace.device_processes.get(device, ())),
        drained_steps_ratio=_ratio(drained, any_op, kernels).device_op_ratio if drained else None,
        streams=measure_streams(ops),
        shared_ids=shared,
        ids=ids,
        short_kernels=_short_kernels(duration_ns[ops.runs_kernels]),
    )


def _short_kernels(length_ns: I64) -> int:
    """How many are shorter than any; one of no length may just be rounded."""
    return int(np.count_nonzero((length_ns > 0) & (length_ns < SHORTEST_KERNEL_NS)))


def device_name(meta: TraceMeta, device: int) -> str:
    """The product name of a device. ROCm numbers operations and properties differently, so where the file
    knows the number in no other way, the one name that all its devices share is taken; empty where there
    are several."""
    shared = set(meta.device_names.values())
    return meta.device_names.get(device) or (shared.pop() if len(shared) == 1 else "")


def device_window(ops: DeviceOps) -> Window:
    """From the first to the last activity of the device."""
    return Window(DEVICE_WINDOW, int(ops.start_ns.min()), int(ops.end_ns.max()))


def steps_window(trace: DeviceTrace) -> Window | None:
    """From the first to the last ProfilerStep as the host saw them; None where the trace has none."""
    annotations = spans_of(trace, Role.ANNOTATION)
    steps = annotations.select(names_matching(trace, annotations, PROFILER_STEP))
    if not len(steps):
        return None
    return Window(STEPS_WINDOW, int(steps.start_ns.min()), int(steps.end_ns.max()))


def _ratio(window: Window, any_op: Intervals, kernels: Intervals) -> WindowRatio:
    low, high = window.start_ns, window.end_ns
    return WindowRatio(window, total(clip(any_op, low, high)), total(clip(kernels, low, high)))


def _drained(trace: DeviceTrace, ops: DeviceOps, steps: Window) -> Window | None:
    """From the first step to the end of all that was launched before the last one ended; None where no launch
    of theirs is known.
    """
    launched = launched_by(trace, ops)
    of_steps = launched.known & (launched.start_ns < steps.end_ns)
    if not of_steps.any():
        return None
    return Window(STEPS_WINDOW, steps.start_ns, max(steps.end_ns, int(ops.end_ns[of_steps].max())))


def _longest_gaps(any_op: Intervals, window: Window) -> tuple[int, ...]:
    """Those at the edges of the window too: it may begin or end with an operation of no length."""
    idle = gaps(any_op, window.start_ns, window.end_ns)
    ascending = np.sort(idle.end - idle.start)
    return tuple(ascending[: -LONGEST_GAPS - 1 : -1].tolist())


def _distinct(ids: I32 | I64) -> list[int]:
    """The different ids, ascending; at once where there is only one (the usual case of millions of rows)."""
    if len(ids) and ids.min() == ids.max():
        return [int(ids[0])]
    return [int(one) for one in np.unique(ids)]
