"""Why the device idled: what the thread that ended each idle stretch was doing meanwhile.

A gap ends with an operation; the call that launched it, on its thread, decides:

- no such call in the trace: UNKNOWN (QUEUED when it was made before the recording began);
- the call had returned when the gap began: the work was QUEUED, waiting for an event or for other work; where
  it began within LAUNCH_LATENCY_NS of that return, as the first of its launch, it was on its way, and
  LAUNCH_BOUND: the host had called too late;
- it had not: the host was late. From the start of the gap until that call returned, each moment goes to what
  the thread was doing, first match wins: a synchronising call → SYNC; a copy call that returned only after
  its copy was done → COPY; a long call that launches nothing (allocation, module loading) → HOST_WORK; any
  other runtime call or the dispatch of an operator → LAUNCH_BOUND; a Python frame, or an annotation, a long
  operator or a long run of short ones (`operator_runs.py`) that launches nothing → HOST_WORK; nothing
  recorded, or a frame known to wait → NOTHING_SUBMITTED. From the call's return on, the work was QUEUED or
  on its way.

A frame that waits tells more than the annotation or operator around it (`recv` around `queue.get`), and less
than one inside it. Frames inside it are how it waits, except in an event loop, which runs them: there they
are work.

A sync call that ends as the device drains is normal, so only its part inside the gap counts. Pauses between
two calls or operators that are shorter than the shortest Python frame kept are the interpreter on its way
from one to the next, so they count as LAUNCH_BOUND: without stacks they would look like nothing, with stacks
like work. Long means not below that floor. The parts of a gap sum to its length exactly. Who occupied a gap
is not proof of who caused it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce

import numpy as np

from layers.evidence.intervals import Intervals, covered, gaps, subtract, union
from layers.layer1_gpu_busy.annotations import is_step_marker
from layers.layer1_gpu_busy.host_stack import (
    ByThread,
    by_thread,
    hold_a_moment,
    names_matching,
    names_that,
    outermost_operators,
    spans_of,
)
from layers.layer1_gpu_busy.idle_gaps import DeviceGaps
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.operator_runs import find_work_runs
from layers.layer1_gpu_busy.runtime_calls import LAUNCHING, Launched, Purpose, launched_by, named_blocking
from parsers.chrome_categories import Role
from parsers.trace_model import I64, PYTHON_FRAME_FLOOR_NS, Bools, DeviceOps, DeviceTrace, HostSpans

WAITING_FRAME = re.compile(
    r"<(built-in )?(method|function) '?(acquire|sleep|select|poll|recv|recv_into|accept|wait)\b"
    r"|\bthreading\.py\(\d+\): wait|\bqueue\.py\(\d+\): get|\bselectors\.py\(\d+\): select"
    r"|\bzmq\b.*: (poll|recv)|\bsched_yield\b"
    r"|: (acquire_read|acquire_write|recv_requests)\b|\bget'? of '?_queue\.SimpleQueue"
    r"|multiprocessing/(queues|connection)\.py\(\d+\): (get|poll|wait|_?recv(_bytes)?)\b"
    r"|<built-in function read>"
)
"""Python frames in which a thread waits for others to give it work; names as torch.profiler writes frames."""

EVENT_LOOP = re.compile(r"\brun_(until_complete|forever)'? of '?uvloop")
"""Frames that wait for events and run what waits for them; other event loops wait in a frame of its own."""

LAUNCH_LATENCY_NS = 10_000
"""From the return of a launch call to the start of what it launched on an idle device: 2 to 7 µs on the
machines of the traces at hand. Within this time nothing else need have held it up. perfkit's choice."""
NEVER_NS = np.iinfo(np.int64).min


def split_by_cause(
    trace: DeviceTrace, ops: DeviceOps, launched: Launched, idle: DeviceGaps
) -> dict[Cause, I64]:
    """Time of each gap by cause: one array of shape (gaps,) a cause, which sum to the gaps' lengths."""
    parts = {cause: np.zeros(len(idle), np.int64) for cause in Cause}
    enders = launched.take(idle.after)
    late = enders.known & (enders.end_ns > idle.start_ns)
    brief = enders.known & (idle.end_ns - enders.end_ns <= LAUNCH_LATENCY_NS) & _leads(launched)[idle.after]
    queued = (enders.known & ~late & ~brief) | enders.before_recording
    unknown = ~enders.known & ~queued
    parts[Cause.QUEUED][queued] = idle.length_ns[queued]
    parts[Cause.UNKNOWN][unknown] = idle.length_ns[unknown]
    on_its_way = enders.known & ~late & brief
    parts[Cause.LAUNCH_BOUND][on_its_way] = idle.length_ns[on_its_way]
    host = _host(trace, launched)
    for thread in np.unique(enders.track_id[late]):
        here = np.flatnonzero(late & (enders.track_id == thread))
        returned_ns = np.minimum(enders.end_ns[here], idle.end_ns[here])
        _split_host_time(_activity(host, int(thread)), idle.start_ns[here], returned_ns, here, parts)
        afterwards_ns = idle.end_ns[here] - returned_ns
        parts[Cause.LAUNCH_BOUND][here] += np.where(brief[here], afterwards_ns, 0)
        parts[Cause.QUEUED][here] += np.where(brief[here], 0, afterwards_ns)
    return parts


def _leads(launched: Launched) -> Bools:
    """Which operations are the first of their launch, and not later nodes of a graph; False for -1, which
    is none.
    """
    leads = np.zeros(len(launched.call) + 1, bool)
    leads[np.unique(launched.call, return_index=True)[1]] = True
    leads[-1] = False
    return leads


def _split_host_time(
    activity: dict[Cause, Intervals], start_ns: I64, end_ns: I64, gaps_here: I64, parts: dict[Cause, I64]
) -> None:
    """Give each stretch [start, end) of host time to what the thread did; the rest to NOTHING_SUBMITTED."""
    rest = end_ns - start_ns
    for cause, when in activity.items():
        parts[cause][gaps_here] = covered(when, start_ns, end_ns)
        rest = rest - parts[cause][gaps_here]
    parts[Cause.NOTHING_SUBMITTED][gaps_here] = rest


@dataclass(frozen=True, slots=True)
class _Host:
    """The spans that tell what a thread was doing."""

    calls: ByThread
    syncs: ByThread
    blocking_copies: ByThread
    launches: ByThread
    other_calls: ByThread
    operators: ByThread
    annotations: ByThread
    frames: ByThread
    waits: ByThread
    loops: ByThread


def _host(trace: DeviceTrace, launched: Launched) -> _Host:
    calls = launched.calls
    annotations, frames = spans_of(trace, Role.ANNOTATION), spans_of(trace, Role.PYTHON)
    annotations = annotations.select(~names_that(trace, annotations, is_step_marker))
    waits, loops = (names_matching(trace, frames, pattern) for pattern in (WAITING_FRAME, EVENT_LOOP))
    return _Host(
        calls=by_thread(calls.spans),
        syncs=by_thread(calls.spans.select(calls.are(Purpose.SYNC))),
        blocking_copies=by_thread(calls.spans.select(_blocking_copies(trace))),
        launches=by_thread(calls.spans.select(calls.are(*LAUNCHING))),
        other_calls=by_thread(calls.spans.select(calls.are(Purpose.OTHER))),
        operators=by_thread(outermost_operators(trace)),
        annotations=by_thread(annotations),
        frames=by_thread(frames.select(~waits & ~loops)),
        waits=by_thread(frames.select(waits)),
        loops=by_thread(frames.select(loops)),
    )


def _blocking_copies(trace: DeviceTrace) -> Bools:
    """Copy calls that returned only after their copy was done, on whatever device, by name or as their times
    show.
    """
    ops = trace.device_ops
    launched = launched_by(trace, ops)
    calls = launched.calls
    done_ns = np.full(len(calls.spans), NEVER_NS)
    np.maximum.at(done_ns, launched.call[launched.known], ops.end_ns[launched.known])
    waited = (done_ns > NEVER_NS) & (calls.spans.end_ns >= done_ns)
    return named_blocking(trace, calls) | (calls.are(Purpose.COPY) & waited)


def _activity(host: _Host, thread: int) -> dict[Cause, Intervals]:
    """What one thread was doing: disjoint normal sets by the cause that each stands for, first match wins."""
    syncs, copies = _when(host.syncs.of(thread)), _when(host.blocking_copies.of(thread))
    ops = _operators(host, thread)
    waiting = _either(syncs, copies)
    stalls = subtract(_when(_long(host.other_calls.of(thread))), waiting)
    loops = _idle_loops(host, thread)
    idling = _either(_waits(host, thread), loops)
    dispatch, runs = subtract(ops.dispatch, idling), subtract(ops.runs, idling)
    submitting = _without_short_pauses(reduce(_either, (_when(host.calls.of(thread)), dispatch, runs)))
    submitting = subtract(submitting, reduce(_either, (waiting, stalls, runs)))
    quiet = host.annotations.of(thread)
    quiet = quiet.select(~_hold_a_launch(quiet, host, thread))
    frames = subtract(_when(host.frames.of(thread)), _either(_when(host.waits.of(thread)), loops))
    no_launch = reduce(_either, (_when(quiet), ops.long, runs))
    work = _either(frames, subtract(no_launch, idling))
    return {
        Cause.SYNC: syncs,
        Cause.COPY: subtract(copies, syncs),
        Cause.LAUNCH_BOUND: submitting,
        Cause.HOST_WORK: _either(stalls, subtract(work, _either(waiting, submitting))),
    }


def _waits(host: _Host, thread: int) -> Intervals:
    """When a thread waited for work: in frames that wait, without the operators and annotations in them."""
    waits = host.waits.of(thread)
    starts = [spans.of(thread).start_ns for spans in (host.operators, host.annotations)]
    start_ns = np.sort(np.concatenate(starts))
    inside = np.searchsorted(start_ns, waits.end_ns) - np.searchsorted(start_ns, waits.start_ns, side="right")
    all_waits = _when(waits)
    if not inside.any():
        return all_waits
    within = [_when(_lying_in(all_waits, s.of(thread))) for s in (host.operators, host.annotations)]
    return _either(_when(waits.select(inside <= 0)), subtract(all_waits, _either(*within)))


def _idle_loops(host: _Host, thread: int) -> Intervals:
    """When an event loop of a thread ran nothing."""
    loops = _when(host.loops.of(thread))
    if not len(loops.start):
        return loops
    run = [_when(_lying_in(loops, s.of(thread))) for s in (host.frames, host.operators, host.annotations)]
    return subtract(loops, reduce(_either, run))


def _lying_in(of: Intervals, spans: HostSpans) -> HostSpans:
    """The spans that a normal set covers from end to end."""
    place = np.searchsorted(of.start, spans.start_ns, side="right") - 1
    ends_ns = np.append(of.end, NEVER_NS)[place]
    return spans.select(spans.end_ns <= ends_ns)


@dataclass(frozen=True, slots=True)
class _Operators:
    """When the outermost operators of a thread ran: those that launch something or are few and brief, the
    long ones that do not, and the long runs of brief ones.
    """

    dispatch: Intervals
    long: Intervals
    runs: Intervals


def _operators(host: _Host, thread: int) -> _Operators:
    spans = host.operators.of(thread)
    holds, long = _hold_a_launch(spans, host, thread), _is_long(spans)
    brief = spans.select(~holds & ~long)
    runs = find_work_runs(brief, host.launches.of(thread).start_ns)
    few = _when(brief.select(~runs.work))
    return _Operators(_either(_when(spans.select(holds)), few), _when(spans.select(~holds & long)), runs.when)


def _hold_a_launch(spans: HostSpans, host: _Host, thread: int) -> Bools:
    return hold_a_moment(spans, host.launches.of(thread).start_ns)


def _without_short_pauses(of: Intervals) -> Intervals:
    """The set with pauses below the floor of Python frames filled."""
    if not len(of.start):
        return of
    pauses = gaps(of, int(of.start[0]), int(of.end[-1]))
    short = pauses.end - pauses.start < PYTHON_FRAME_FLOOR_NS
    return _either(of, Intervals(pauses.start[short], pauses.end[short]))


def _is_long(spans: HostSpans) -> Bools:
    return spans.end_ns - spans.start_ns >= PYTHON_FRAME_FLOOR_NS


def _long(spans: HostSpans) -> HostSpans:
    return spans.select(_is_long(spans))


def _when(spans: HostSpans) -> Intervals:
    return union(spans.start_ns, spans.end_ns)


def _either(a: Intervals, b: Intervals) -> Intervals:
    return union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))
