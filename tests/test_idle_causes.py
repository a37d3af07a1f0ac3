"""Why the device idled: each rule on a trace built for it, and all of them against a look at every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.idle_causes import EVENT_LOOP, LAUNCH_LATENCY_NS, WAITING_FRAME, split_by_cause
from layers.layer1_gpu_busy.idle_gaps import device_gaps
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.runtime_calls import LAUNCHING, Purpose, launched_by, purpose_of
from parsers.trace_model import PYTHON_FRAME_FLOOR_NS
from tests.builders import (
    Op,
    Span,
    annotation,
    call,
    copy_to_host,
    frame,
    kernel,
    one_clock,
    operator,
    ops_of,
    trace_of,
)

US = 1_000
LONG = 2 * PYTHON_FRAME_FLOOR_NS
WAIT = "<built-in method acquire of _thread.lock object at 0x7f>"


def causes(ops: Sequence[Op], host: Sequence[Span]) -> dict[Cause, int]:
    """Idle time by cause inside the device window, causes without any left out."""
    trace = trace_of(ops, host)
    table = ops_of(trace)
    window = Window("device", int(table.start_ns.min()), int(table.end_ns.max()))
    idle = device_gaps(table, window)
    parts = split_by_cause(trace, table, launched_by(trace, table), idle)
    assert np.sum(list(parts.values()), axis=0).tolist() == idle.length_ns.tolist()
    return {cause: int(part.sum()) for cause, part in parts.items() if part.sum()}


def gap(length: int, *host: Span, launch_at: int, call_length: int = 0) -> dict[Cause, int]:
    """Causes of one gap [0, length) that a kernel ends whose launch call started at `launch_at`."""
    launch = call(launch_at, launch_at + call_length, correlation=1)
    return causes([kernel(-100, 0), kernel(length, length + 10, correlation=1)], [launch, *host])


def test_a_launch_before_the_gap_means_queued_work() -> None:
    assert gap(LONG, launch_at=-50) == {Cause.QUEUED: LONG}
    assert gap(LONG, launch_at=0) == {Cause.QUEUED: LONG}


def test_what_starts_as_soon_as_a_launch_can_was_on_its_way() -> None:
    """The device was idle because the call came late, though it came before the gap."""
    assert gap(LAUNCH_LATENCY_NS, launch_at=0) == {Cause.LAUNCH_BOUND: LAUNCH_LATENCY_NS}
    assert gap(LAUNCH_LATENCY_NS + 1, launch_at=0) == {Cause.QUEUED: LAUNCH_LATENCY_NS + 1}
    in_the_call = gap(LAUNCH_LATENCY_NS, launch_at=-50, call_length=60)
    assert in_the_call == {Cause.LAUNCH_BOUND: LAUNCH_LATENCY_NS}


def test_nodes_of_a_running_graph_wait_for_each_other() -> None:
    nodes = [kernel(0, 10, correlation=1), kernel(30, 40, correlation=1)]
    assert causes(nodes, [call(-50, -40, "cudaGraphLaunch", correlation=1)]) == {Cause.QUEUED: 20}


def test_without_the_launch_the_cause_is_unknown() -> None:
    assert causes([kernel(0, 10), kernel(60, 70, correlation=8)], [call(0, 1, correlation=5)]) == {
        Cause.UNKNOWN: 50
    }


def _seen(at: int) -> list[Op]:
    """Operations without idle time between them, whose launches were recorded."""
    return [kernel(at + i, at + i + 1, correlation=100 + i) for i in range(9)]


def _calls_of_seen() -> list[Span]:
    return [call(0, 1, correlation=100 + i) for i in range(9)]


def test_what_was_launched_before_the_recording_was_queued() -> None:
    ops = [kernel(0, 10), kernel(60, 70, correlation=3), kernel(70, 80, correlation=5), *_seen(80)]
    assert causes(ops, [call(0, 1, correlation=5), *_calls_of_seen()]) == {Cause.QUEUED: 50}


def test_ids_below_all_others_tell_nothing_where_most_launches_were_not_recorded() -> None:
    ops = [kernel(0, 10, correlation=2), kernel(60, 70, correlation=3), kernel(70, 80, correlation=5)]
    assert causes(ops, [call(0, 1, correlation=5)]) == {Cause.UNKNOWN: 50}


def test_idle_after_the_last_operation_has_no_known_cause() -> None:
    trace = trace_of([kernel(0, 10, correlation=1)], [call(-5, -4, correlation=1)])
    table = ops_of(trace)
    idle = device_gaps(table, Window("recorded", 0, 100))
    parts = split_by_cause(trace, table, launched_by(trace, table), idle)
    assert parts[Cause.UNKNOWN].tolist() == [90]


def test_only_the_part_of_a_sync_that_lies_in_the_gap_counts() -> None:
    sync = call(-LONG, 300, "cudaStreamSynchronize")
    assert gap(LONG, sync, launch_at=LONG) == {Cause.SYNC: 300, Cause.NOTHING_SUBMITTED: LONG - 300}


def test_a_copy_that_returned_when_it_was_done_is_a_wait() -> None:
    ops = [copy_to_host(-100, 0, correlation=1), kernel(LONG, LONG + 9, correlation=2)]
    launch = call(LONG, LONG, correlation=2)
    waited = [call(-900, 40, "cudaMemcpyAsync", correlation=1), launch]
    assert causes(ops, waited)[Cause.COPY] == 40
    at_once = [call(-900, -890, "cudaMemcpyAsync", correlation=1), launch]
    assert Cause.COPY not in causes(ops, at_once)


def test_a_copy_call_that_always_waits_is_a_wait_by_its_name() -> None:
    blocking = call(0, 700, "hipMemcpyWithStream")
    assert gap(LONG, blocking, launch_at=LONG)[Cause.COPY] == 700
    brief = call(0, 700, "hipMemcpyAsync")
    assert gap(LONG, brief, launch_at=LONG)[Cause.LAUNCH_BOUND] == 700


def test_operators_that_launch_are_dispatch_however_long() -> None:
    dispatch = operator(10, LONG + 10, "aten::convolution")
    assert gap(LONG, dispatch, launch_at=LONG)[Cause.LAUNCH_BOUND] == LONG - 10


def test_a_long_operator_that_launches_nothing_is_host_work() -> None:
    collate = operator(0, LONG, "aten::stack")
    assert gap(2 * LONG, collate, launch_at=2 * LONG)[Cause.HOST_WORK] == LONG


def test_a_long_call_that_launches_nothing_is_host_work_even_inside_an_operator() -> None:
    dispatch = operator(0, LONG + 10, "aten::convolution")
    free = call(0, LONG - 10, "cudaFree")
    assert gap(LONG, dispatch, free, launch_at=LONG) == {Cause.HOST_WORK: LONG - 10, Cause.LAUNCH_BOUND: 10}


def test_short_pauses_between_calls_are_the_interpreter_on_its_way() -> None:
    short = PYTHON_FRAME_FLOOR_NS - 1
    before = call(-10, 0, correlation=9)
    assert gap(short + 1, before, launch_at=short, call_length=1) == {Cause.LAUNCH_BOUND: short + 1}
    long = PYTHON_FRAME_FLOOR_NS
    assert gap(long + 1, before, launch_at=long, call_length=1) == {
        Cause.NOTHING_SUBMITTED: long,
        Cause.LAUNCH_BOUND: 1,
    }


def test_frames_and_annotations_are_host_work() -> None:
    assert gap(LONG, frame(0, LONG, "scheduler.py(7): schedule"), launch_at=LONG) == {Cause.HOST_WORK: LONG}
    assert gap(LONG, annotation(0, LONG, "## prepare ##"), launch_at=LONG) == {Cause.HOST_WORK: LONG}


def test_a_step_marker_is_no_work() -> None:
    assert gap(LONG, annotation(0, LONG, "ProfilerStep#3"), launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_a_frame_that_waits_for_requests_is_not_work() -> None:
    loop, wait = frame(0, LONG, "scheduler.py(7): run"), frame(100, LONG, WAIT)
    assert gap(LONG, loop, wait, launch_at=LONG) == {
        Cause.HOST_WORK: 100,
        Cause.NOTHING_SUBMITTED: LONG - 100,
    }


def test_an_annotation_around_launches_says_nothing_of_the_time_between_them() -> None:
    served = annotation(-100, 2 * LONG, "serve_forever")
    assert gap(LONG, served, launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_other_threads_do_not_explain_a_gap() -> None:
    elsewhere = call(0, LONG, "cudaStreamSynchronize", thread="other")
    assert gap(LONG, elsewhere, launch_at=LONG) == {Cause.NOTHING_SUBMITTED: LONG}


def test_after_the_launch_call_returned_the_work_was_queued() -> None:
    queued = LAUNCH_LATENCY_NS + 1
    assert gap(LONG, launch_at=LONG - queued - 10, call_length=10) == {
        Cause.NOTHING_SUBMITTED: LONG - queued - 10,
        Cause.LAUNCH_BOUND: 10,
        Cause.QUEUED: queued,
    }


def test_a_kernel_that_seems_to_start_before_its_call_keeps_the_sum() -> None:
    with one_clock():
        assert gap(LONG, launch_at=LONG + 5, call_length=3) == {Cause.NOTHING_SUBMITTED: LONG}
    assert gap(LONG, launch_at=LONG + 5, call_length=3) == {Cause.UNKNOWN: LONG}


@pytest.mark.parametrize(
    "name",
    [
        WAIT,
        "<built-in function sleep>",
        "<method 'poll' of 'select.epoll' objects>",
        "threading.py(320): wait",
        "queue.py(171): get",
        "zmq/sugar/socket.py(911): recv",
        "shm_broadcast.py(495): acquire_read",
        "<method 'get' of '_queue.SimpleQueue' objects>",
        "multiprocessing/connection.py(390): _recv",
        "multiprocessing/queues.py(100): get",
        "scheduler.py(1011): recv_requests",
    ],
)
def test_known_waits(name: str) -> None:
    assert WAITING_FRAME.search(name)


@pytest.mark.parametrize("method", ["run_until_complete", "run_forever"])
def test_an_event_loop_is_no_wait_by_itself(method: str) -> None:
    name = f"<method '{method}' of 'uvloop.loop.Loop' objects>"
    assert EVENT_LOOP.search(name) and not WAITING_FRAME.search(name)


@pytest.mark.parametrize(
    "name", ["scheduler.py(10): get_next_batch", "nn.Module: Wait_0", "<built-in function zoom>"]
)
def test_work_is_not_taken_for_a_wait(name: str) -> None:
    assert not WAITING_FRAME.search(name)


# A twin that looks at every moment, in units of a fifth of the floor, so that short and long both occur.
UNIT = PYTHON_FRAME_FLOOR_NS // 5
NAMES = [
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cudaGraphLaunch",
]
THREADS = ["main", "other"]


def covers(span: Span | Op, at: int) -> bool:
    return span.start <= at < span.end


def is_long(span: Span) -> bool:
    return span.end - span.start >= PYTHON_FRAME_FLOOR_NS


class Twin:
    """What one thread was doing, by asking every span of it."""

    def __init__(self, ops: Sequence[Op], host: Sequence[Span], thread: str) -> None:
        here = [s for s in host if s.thread == thread]
        self.calls = [s for s in here if s.category == "cuda_runtime"]
        self.purpose = {s: self.kind(s, ops) for s in self.calls}
        operators = sorted((s for s in here if s.category == "cpu_op"), key=lambda s: (s.start, -s.end))
        reach, outer = -(10**9), []
        for s in operators:
            if not (s.end <= reach and s.start < reach):
                outer.append(s)
            reach = max(reach, s.end)
        launches = [s for s in self.calls if self.purpose[s] in LAUNCHING]
        dispatches = [o for o in outer if not is_long(o) or any(covers(o, c.start) for c in launches)]
        self.dispatches = dispatches
        self.long_operators = [o for o in outer if o not in dispatches]
        frames = [s for s in here if s.category in ("python_function", "user_annotation")]
        self.frames = [s for s in frames if s.category == "python_function" and s.name != WAIT]
        annotations = [s for s in frames if s.category == "user_annotation" and s.name != "ProfilerStep#1"]
        self.quiet = [s for s in annotations if not self.announces(s)]
        self.waits = [s for s in frames if s.name == WAIT]
        self.inner = [*outer, *annotations]
        self.copies = [s for s in self.calls if self.purpose[s] == Purpose.COPY and self.waited(s, ops)]

    def announces(self, span: Span) -> bool:
        """An annotation around launches."""
        inside = [s for s in self.calls if span.start <= s.start < span.end]
        return span.category == "user_annotation" and any(self.purpose[s] in LAUNCHING for s in inside)

    @staticmethod
    def kind(span: Span, ops: Sequence[Op]) -> Purpose:
        purpose = purpose_of(span.name)
        launched = any(o.correlation == span.correlation for o in ops)
        return Purpose.LAUNCH if launched and purpose == Purpose.OTHER else purpose

    @staticmethod
    def waited(span: Span, ops: Sequence[Op]) -> bool:
        ends = [o.end for o in ops if o.correlation == span.correlation]
        return "Async" not in span.name or (bool(ends) and span.end >= max(ends))

    def waits_at(self, at: int) -> bool:
        """In a wait that holds no operator or annotation, or in none of those that waits hold."""
        waits = [w for w in self.waits if covers(w, at)]
        if any(not any(w.start < s.start < w.end for s in self.inner) for w in waits):
            return True
        return bool(waits) and not any(covers(s, at) and self.lies_in_waits(s) for s in self.inner)

    def lies_in_waits(self, span: Span) -> bool:
        moments = range(span.start, span.end, UNIT)
        return all(any(covers(w, at) for w in self.waits) for at in moments)

    def submits_at(self, at: int) -> bool:
        dispatching = any(covers(s, at) for s in self.dispatches) and not self.waits_at(at)
        return dispatching or any(covers(s, at) for s in self.calls)

    def in_short_pause(self, at: int) -> bool:
        """Submitting within less than the floor before and after."""
        around = range(at - PYTHON_FRAME_FLOOR_NS, at + PYTHON_FRAME_FLOOR_NS, UNIT)
        before = [m + UNIT for m in around if m < at and self.submits_at(m)]
        after = [m for m in around if m > at and self.submits_at(m)]
        return bool(before) and bool(after) and min(after) - max(before) < PYTHON_FRAME_FLOOR_NS

    def cause(self, at: int) -> Cause:
        open_calls = [s for s in self.calls if covers(s, at)]
        if any(self.purpose[s] == Purpose.SYNC for s in open_calls):
            return Cause.SYNC
        if any(s in self.copies for s in open_calls):
            return Cause.COPY
        if any(self.purpose[s] == Purpose.OTHER and is_long(s) for s in open_calls):
            return Cause.HOST_WORK
        if self.submits_at(at) or self.in_short_pause(at):
            return Cause.LAUNCH_BOUND
        if any(covers(s, at) for s in (*self.quiet, *self.long_operators)) and not self.waits_at(at):
            return Cause.HOST_WORK
        if any(covers(s, at) for s in self.frames) and not any(covers(s, at) for s in self.waits):
            return Cause.HOST_WORK
        return Cause.NOTHING_SUBMITTED


def twin_causes(ops: Sequence[Op], host: Sequence[Span]) -> Counter[Cause]:
    """Moments of idle time by cause, from first to last activity, which may be an operation of no length."""
    lasting = sorted((o for o in ops if o.end > o.start), key=lambda o: o.start)
    found: Counter[Cause] = Counter()
    last = max(o.end for o in ops)
    brief_at_the_end = next((o for o in ops if o.start == last), None)
    for at in range(min(o.start for o in ops), last, UNIT):
        if any(covers(o, at) for o in ops):
            continue
        ender = next((o for o in lasting if o.start >= at), brief_at_the_end)
        launch = next((s for s in host if ender and s.correlation == ender.correlation), None)
        if launch is None:
            found[Cause.UNKNOWN] += UNIT
        elif at >= launch.end:
            found[on_its_way_or_queued(ops, ender, launch)] += UNIT
        else:
            found[Twin(ops, host, launch.thread).cause(at)] += UNIT
    return found


def on_its_way_or_queued(ops: Sequence[Op], ender: Op | None, launch: Span) -> Cause:
    """What an operation was after its call's return: on its way, or queued."""
    assert ender is not None
    leads = ender is next(o for o in ops if o.correlation == ender.correlation)
    brief = ender.start - launch.end <= LAUNCH_LATENCY_NS
    return Cause.LAUNCH_BOUND if leads and brief else Cause.QUEUED


times = st.integers(0, 30)
lengths = st.integers(0, 8)
threads = st.sampled_from(THREADS)


@st.composite
def traces(draw: st.DrawFn) -> tuple[list[Op], list[Span]]:
    host: list[Span] = []
    for i in range(1, draw(st.integers(1, 8)) + 1):
        at, length = UNIT * draw(times), UNIT * draw(lengths)
        host.append(call(at, at + length, draw(st.sampled_from(NAMES)), correlation=i, thread=draw(threads)))
    for _ in range(draw(st.integers(0, 6))):
        at, length, thread = UNIT * draw(times), UNIT * draw(lengths), draw(threads)
        make, name = draw(
            st.sampled_from(
                [
                    (operator, "aten::mm"),
                    (frame, "run"),
                    (frame, WAIT),
                    (annotation, "x"),
                    (annotation, "ProfilerStep#1"),
                ]
            )
        )
        host.append(make(at, at + length, name, thread=thread))
    ops = []
    for _ in range(draw(st.integers(1, 8))):
        at, length = UNIT * draw(times), UNIT * draw(lengths)
        ops.append(
            kernel(at, at + length, correlation=draw(st.integers(1, 9)), stream=draw(st.integers(1, 2)))
        )
    return ops, host


@given(traces())
def test_causes_agree_with_a_look_at_every_moment(made: tuple[list[Op], list[Span]]) -> None:
    ops, host = made
    ordered = sorted(host, key=lambda s: s.start)
    with one_clock():
        found = causes(ops, host)
    assert found == dict(twin_causes(sorted(ops, key=lambda o: o.start), ordered))
