"""Did what the host launched show up on the device? Launch calls against recorded operations, for a whole
trace.

A profiler that drops kernels leaves their launch calls behind. Calls of one launch nest (a driver call
inside a runtime call) and either may carry the correlation id, so they count as one. Launches into a stream
that is being captured run nothing by design and are counted apart.
"""

from __future__ import annotations

import re

import numpy as np

from layers.layer1_gpu_busy.host_stack import are_outermost, names_matching
from layers.layer1_gpu_busy.model import LaunchCoverage
from layers.layer1_gpu_busy.runtime_calls import Calls, Purpose, runtime_calls
from parsers.trace_model import (
    I32,
    I64,
    NO_CORRELATION,
    PROCESS_SHIFT,
    Bools,
    DeviceOps,
    DeviceTrace,
    HostSpans,
)

BEGIN_CAPTURE = re.compile(r"StreamBeginCapture")
END_CAPTURE = re.compile(r"StreamEndCapture")
END_SLACK = 1.25
"""Launches at the end that are looked at, for each one without an operation. perfkit's choice."""
NEVER_NS = np.iinfo(np.int64).min


def check_coverage(trace: DeviceTrace) -> LaunchCoverage:
    """Count the kernel launches of all threads, and those under which no device operation was recorded."""
    calls = runtime_calls(trace)
    launches = calls.spans.select(calls.are(Purpose.LAUNCH))
    launches, ran = outermost(launches, tied(launches, trace.device_ops))
    captured = ~ran & _captured(trace, calls.spans, launches)
    missing = ~ran & ~captured
    copies, lost_copies = _copies(trace, calls)
    return LaunchCoverage(
        launches=int(np.count_nonzero(~captured)),
        without_operations=int(np.count_nonzero(missing)),
        captured=int(np.count_nonzero(captured)),
        at_the_end=int(np.count_nonzero(missing & _at_the_end(launches, ran))),
        operations_without_launch=_without_launch(calls.spans, trace.device_ops),
        copies=copies,
        lost_copies=lost_copies,
    )


def _copies(trace: DeviceTrace, calls: Calls) -> tuple[int, int]:
    """Copy calls outside of captures, and those of them without an operation. None after the last call that
    has one: the recording of the device may have ended there.
    """
    made_ns = calls.spans.start_ns[tied(calls.spans, trace.device_ops)]
    copies = calls.spans.select(calls.are(Purpose.COPY))
    copies, ran = outermost(copies, tied(copies, trace.device_ops))
    counted = copies.start_ns <= made_ns.max(initial=NEVER_NS)
    counted &= ran | ~_captured(trace, calls.spans, copies)
    return int(np.count_nonzero(counted)), int(np.count_nonzero(counted & ~ran))


def _without_launch(calls: HostSpans, ops: DeviceOps) -> int:
    """Operations whose call should be there and is not: their process has recorded calls with lower ids and
    with higher ones, and others of their name have their call. (Some calls are of a kind that a profiler does
    not record; then no operation of the name has any.)
    """
    ids = np.unique(calls.correlation[calls.correlation > 0])
    at = np.searchsorted(ids, ops.correlation)
    below, above = np.append(NO_CORRELATION, ids)[at], np.append(ids, NO_CORRELATION)[at]
    process = ops.correlation >> PROCESS_SHIFT
    between = (below >> PROCESS_SHIFT == process) & (above >> PROCESS_SHIFT == process)
    has_call = (ops.correlation > 0) & (above == ops.correlation)
    lone = (ops.correlation > 0) & ~has_call & between
    return int(np.count_nonzero(among(ops.name_id[lone], ops.name_id[has_call])))


def _at_the_end(launches: HostSpans, ran: Bools) -> Bools:
    """Launches after the last one that ran: the recording of the device ended first, as it does where the
    host is far ahead when a profiler stops.
    """
    order = np.argsort(launches.start_ns, kind="stable")
    region = int(END_SLACK * np.count_nonzero(~ran))
    after = np.zeros(len(launches), bool)
    if region < len(launches):
        after[order[len(launches) - region :]] = True
    return after


def tied(calls: HostSpans, ops: DeviceOps) -> Bools:
    """Which calls share their correlation id with an operation; ids count from 1."""
    return among(calls.correlation, ops.correlation) & (calls.correlation > 0)


def among(values: I64 | I32, known: I64 | I32) -> Bools:
    """Which values are among the known ones; at once where there are none (numpy would sort them all)."""
    if not len(values) or not len(known):
        return np.zeros(len(values), bool)
    found: Bools = np.isin(values, known)
    return found


def outermost(calls: HostSpans, flags: Bools) -> tuple[HostSpans, Bools]:
    """The calls that lie in no other of their thread, each with its flag or that of any call inside it."""
    order = np.lexsort((-calls.end_ns, calls.start_ns, calls.track_id))
    calls, flags = calls.select(order), flags[order]
    first = np.flatnonzero(are_outermost(calls))
    return calls.select(first), np.logical_or.reduceat(flags, first) if len(first) else flags


def _captured(trace: DeviceTrace, calls: HostSpans, launches: HostSpans) -> Bools:
    """Which launches lie between the begin of a stream capture on their thread and its end; one that is
    never ended runs to the end of the trace.
    """
    begins = calls.select(names_matching(trace, calls, BEGIN_CAPTURE))
    ends = calls.select(names_matching(trace, calls, END_CAPTURE))
    captured = np.zeros(len(launches), bool)
    for track in np.unique(begins.track_id):
        mine = launches.track_id == track
        begun_ns, ended_ns = (_last_before(launches.start_ns[mine], m, track) for m in (begins, ends))
        captured[mine] = begun_ns > ended_ns
    return captured


def _last_before(at_ns: I64, marks: HostSpans, track: int) -> I64:
    """When the last mark of a thread before each moment began; long ago where there is none."""
    starts = marks.start_ns[marks.track_id == track]
    return np.concatenate(([NEVER_NS], starts))[np.searchsorted(starts, at_ns)]
