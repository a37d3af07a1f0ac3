"""Host calls into the CUDA, HIP and oneAPI runtimes: what each is for, and which one launched an operation.

The purpose is read from the name by one ordered table. A call that launched recorded operations is a launch
whatever its name says (old CUPTI tables write `INVALID` for calls newer than themselves). Operations find
their call by correlation id: many operations to one call for graphs, and none where the call lies outside the
recording.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from layers.layer1_gpu_busy.clocks import Clocks, Waits, copy_waits, device_waits
from layers.layer1_gpu_busy.copy_names import copies_to_host
from layers.layer1_gpu_busy.host_stack import names_matching, process_of_track, spans_of
from layers.layer1_gpu_busy.kept import kept
from parsers.chrome_categories import Role
from parsers.trace_model import (
    I8,
    I64,
    NO_CORRELATION,
    PROCESS_SHIFT,
    Bools,
    DeviceOps,
    DeviceTrace,
    HostSpans,
)

SEEN_SHARE = 0.5
"""Share of operations with a launch call from which the launching thread counts as recorded. Real traces
stay above 0.85, or at 0 where no host activity was recorded. perfkit's choice."""


class Purpose(IntEnum):
    """What a runtime call is for."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    COPY = 3
    MEMSET = 4
    SYNC = 5


LAUNCHING = (Purpose.LAUNCH, Purpose.GRAPH_LAUNCH, Purpose.COPY, Purpose.MEMSET)
"""Calls that put work on the device."""

PURPOSES: tuple[tuple[Purpose, str], ...] = (
    (Purpose.OTHER, r"LaunchHostFunc"),
    (Purpose.GRAPH_LAUNCH, r"^(cuda|cu|hip)GraphLaunch"),
    (
        Purpose.LAUNCH,
        r"^(cuda|cu)Launch|^hip\w*Launch|^(ur|pi)EnqueueKernelLaunch|^zeCommandListAppendLaunch",
    ),
    (
        Purpose.COPY,
        r"^(cuda|cu|hip)Memcpy|^(ur|pi)Enqueue(USM|Mem)\w*(Memcpy|Copy)|^zeCommandListAppendMemoryCopy",
    ),
    (Purpose.MEMSET, r"^(cuda|cu|hip)Memset|^(ur|pi)Enqueue(USM|Mem)\w*Fill|^zeCommandListAppendMemoryFill"),
    (
        Purpose.SYNC,
        r"^(cuda|cu|hip)(Device|Stream|Event|Ctx|Thread)Synchronize"
        r"|^(ur|pi)(EventWait|EventsWait|QueueFinish)|^ze\w+Synchronize",
    ),
)
"""First match wins. Names: CUDA runtime and driver API, HIP runtime API, Unified Runtime and Level Zero."""

WHOLE_DEVICE_WAIT = re.compile(r"^(cudaDevice|hipDevice|cuCtx|hipCtx|cudaThread)Synchronize")
STREAM_WAIT = re.compile(r"^(cuda|cu|hip)StreamSynchronize")
"""Waits for all that a device was given, and for one stream."""

RETURNS_AT_ONCE = re.compile(r"Async")
"""Copies so named need not wait; the others (`cudaMemcpy`, `hipMemcpyWithStream`) return when done."""

NO_CALL = -1

SHARED_TOLERANCE = 0.05
"""Share of correlation ids that may name several launches before a file counts as that of several processes.
In none of the real traces at hand does one; text saved from damage may repeat some. perfkit's choice."""
ROUNDED_NS = 2_000
"""Where times are whole microseconds, a call may seem to begin so long after the one that it lies in."""

_COMPILED = tuple((purpose, re.compile(pattern)) for purpose, pattern in PURPOSES)


def purpose_of(name: str) -> Purpose:
    """What a call is for, by its name; OTHER when no pattern knows it."""
    return next((purpose for purpose, pattern in _COMPILED if pattern.search(name)), Purpose.OTHER)


@dataclass(frozen=True, slots=True)
class Calls:
    """All runtime and driver calls of a trace by start time, with what each is for; shape (n,)."""

    spans: HostSpans
    purpose: I8

    def are(self, *purposes: Purpose) -> Bools:
        """Which calls serve one of the purposes."""
        chosen: Bools = np.isin(self.purpose, purposes)
        return chosen


@kept
def runtime_calls(trace: DeviceTrace) -> Calls:
    """The runtime and driver calls; each distinct name is looked at once."""
    spans = spans_of(trace, Role.RUNTIME)
    name_ids, which = np.unique(spans.name_id, return_inverse=True)
    purpose = np.array([purpose_of(trace.names[i]) for i in name_ids], np.int8)
    return Calls(spans, purpose[which])


def named_blocking(trace: DeviceTrace, calls: Calls) -> Bools:
    """Which calls are copies that return when the copy is done, by their names."""
    return calls.are(Purpose.COPY) & ~names_matching(trace, calls.spans, RETURNS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Launched:
    """The call that launched each of one device's operations; all arrays have shape (operations,).

    `call` indexes `calls.spans` and is NO_CALL where the trace holds no such call; the three columns after
    `known` say nothing there. Where `clocks` do not agree no call is known, since times of host and device
    cannot be compared. `before_recording`: no call,
    and an id below that of every recorded call, so the launch was made before the recording began (ids
    count up with the calls of a process).
    """

    calls: Calls
    call: I64
    known: Bools
    start_ns: I64
    end_ns: I64
    track_id: I64
    before_recording: Bools
    clocks: Clocks

    def take(self, op: I64) -> Launched:
        """The same for chosen operations, in that order; -1 chooses none, which has no call."""
        call = np.append(self.call, NO_CALL)[op]
        known, before = (np.append(flags, False)[op] for flags in (self.known, self.before_recording))
        columns = (self.start_ns, self.end_ns, self.track_id)
        start_ns, end_ns, track_id = (np.append(column, 0)[op] for column in columns)
        return Launched(self.calls, call, known, start_ns, end_ns, track_id, before, self.clocks)

    def by(self, *purposes: Purpose) -> Bools:
        """Which operations a call of one of the purposes launched."""
        launches: Bools = np.append(self.calls.are(*purposes), False)[self.call]
        return self.known & launches


def in_graph(ops: DeviceOps, replayed: Bools) -> Bools:
    """Which operations are nodes of a graph: a graph launch `replayed` them, or they bear a graph's id."""
    return replayed | (ops.graph_id > 0)


@kept
def launched_by(trace: DeviceTrace, ops: DeviceOps) -> Launched:
    """Tie operations to their calls by correlation id; O(n log n). CUPTI numbers from 1, so 0 ties nothing.

    Where several calls share an id (files of several ranks merged into one) the first is taken. Calls of
    unknown purpose that launched something become launches.
    """
    calls = runtime_calls(trace)
    ids, first = _first_call_of_id(calls)
    at = np.searchsorted(ids, ops.correlation)
    tied = (ops.correlation > 0) & (np.append(ids, NO_CORRELATION)[at] == ops.correlation)
    clocks = _clocks(trace, ops, calls, np.where(tied, np.append(first, NO_CALL)[at], NO_CALL))
    known = tied if clocks.agree else np.zeros_like(tied)
    call = np.where(known, np.append(first, NO_CALL)[at], NO_CALL)
    below, above = np.append(NO_CORRELATION, ids)[at], np.append(ids, NO_CORRELATION)[at]
    process = ops.correlation >> PROCESS_SHIFT
    first_of_process = (below >> PROCESS_SHIFT != process) & (above >> PROCESS_SHIFT == process)
    before_recording = (
        ~tied & (ops.correlation > 0) & first_of_process & (tied.sum() >= SEEN_SHARE * len(tied))
    )
    columns = (calls.spans.start_ns, calls.spans.end_ns, calls.spans.track_id.astype(np.int64))
    start_ns, end_ns, track_id = (np.append(column, 0)[call] for column in columns)
    purpose = calls.purpose.copy()
    purpose[call[known][purpose[call[known]] == Purpose.OTHER]] = Purpose.LAUNCH
    calls = Calls(calls.spans, purpose)
    return Launched(calls, call, known, start_ns, end_ns, track_id, before_recording, clocks)


def whole_device_waits(trace: DeviceTrace, calls: Calls) -> HostSpans:
    """The waits after which the device had run all that was launched before, by start. A wait does not name
    its device or process, so in a trace of several there is none.
    """
    processes = {trace.tracks[track].pid for track in np.unique(calls.spans.track_id)}
    one_device = len(np.unique(trace.device_ops.device)) == 1 and len(processes) == 1
    proving = calls.are(Purpose.SYNC) & names_matching(trace, calls.spans, WHOLE_DEVICE_WAIT) & one_device
    return calls.spans.select(proving)


def _clocks(trace: DeviceTrace, ops: DeviceOps, calls: Calls, call: I64) -> Clocks:
    """What the calls of operations (NO_CALL: none), and waits for them, say of the clocks."""
    tied = np.flatnonzero(call != NO_CALL)
    early = ops.start_ns[tied] < calls.spans.start_ns[call[tied]]
    of_device = device_waits(
        whole_device_waits(trace, calls), calls.spans.end_ns[call[tied]], ops.end_ns[tied]
    )
    of_copies = _copy_waits(trace, ops, calls, call)
    return Clocks(
        early_share=float(early.mean()) if len(early) else None,
        waits=len(of_device) + len(of_copies),
        short_waits=of_device.short + of_copies.short,
    )


def _copy_waits(trace: DeviceTrace, ops: DeviceOps, calls: Calls, call: I64) -> Waits:
    copies = np.flatnonzero((call != NO_CALL) & copies_to_host(trace, ops))
    copies = copies[calls.are(Purpose.COPY)[call[copies]]]
    are_waits = calls.are(Purpose.SYNC) & names_matching(trace, calls.spans, STREAM_WAIT)
    return copy_waits(calls.spans, are_waits, call[copies], ops.end_ns[copies])


@kept
def ids_of_several_calls(trace: DeviceTrace) -> int:
    """How many correlation ids calls bear that are not one launch: each process counts its own.

    One launch may be several calls of a thread, of different names, the later ones inside the first. Where
    all calls are said to be of one process, up to SHARED_TOLERANCE of the ids count as a profiler's slips.
    """
    calls, process = runtime_calls(trace).spans, process_of_track(trace)
    rows = np.flatnonzero(calls.correlation > 0)
    ids = np.sort(calls.correlation[rows])
    if not (ids[1:] == ids[:-1]).any():
        return 0
    rows = rows[np.lexsort((-calls.end_ns[rows], calls.start_ns[rows], calls.correlation[rows]))]
    opens = np.diff(calls.correlation[rows], prepend=NO_CORRELATION) != 0
    later, outer = rows[~opens], rows[opens][np.cumsum(opens) - 1][~opens]
    foreign = process[calls.track_id[later]] != process[calls.track_id[outer]]
    shared = len(np.unique(calls.correlation[later[foreign | _no_part_of(calls, later, outer)]]))
    return shared if foreign.any() or shared > SHARED_TOLERANCE * np.count_nonzero(opens) else 0


def _no_part_of(calls: HostSpans, later: I64, outer: I64) -> Bools:
    """Which calls are no part of the outer call of their id, nor the same call written twice."""
    elsewhere = calls.track_id[later] != calls.track_id[outer]
    after = calls.start_ns[later] > calls.end_ns[outer] + ROUNDED_NS
    again = calls.name_id[later] == calls.name_id[outer]
    twice = (calls.start_ns[later] == calls.start_ns[outer]) & (calls.end_ns[later] == calls.end_ns[outer])
    apart: Bools = (elsewhere | after | again) & ~(again & twice & ~elsewhere)
    return apart


def _first_call_of_id(calls: Calls) -> tuple[I64, I64]:
    """The distinct correlation ids, ascending, and the first call of each."""
    rows = np.flatnonzero(calls.spans.correlation > 0)
    ids, first = np.unique(calls.spans.correlation[rows], return_index=True)
    return ids, rows[first]
