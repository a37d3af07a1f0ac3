"""Causes of idle time against a twin that looks at every moment, in units of a fifth of the floor, so that
short and long both occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy import operator_runs
from layers.layer1_gpu_busy.idle_causes import LAUNCH_LATENCY_NS
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.runtime_calls import LAUNCHING, Purpose, purpose_of
from parsers.trace_model import PYTHON_FRAME_FLOOR_NS
from tests.builders import Op, Span, annotation, call, frame, kernel, one_clock, operator
from tests.test_idle_causes import WAIT, causes

UNIT = PYTHON_FRAME_FLOOR_NS // 5
MANY, WORK_NS = 3, 9 * UNIT
"""Small, so that runs of operators that are work occur."""
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
        holding = [o for o in outer if any(covers(o, c.start) for c in launches)]
        brief = [o for o in outer if o not in holding and not is_long(o)]
        runs = [
            [o for o in brief if sum(c.start < o.start for c in launches) == n]
            for n in range(len(launches) + 1)
        ]
        self.runs = [run for run in runs if self.works(run)]
        self.dispatches = [*holding, *(o for run in runs if run not in self.runs for o in run)]
        self.long_operators = [o for o in outer if o not in holding and is_long(o)]
        frames = [s for s in here if s.category in ("python_function", "user_annotation")]
        self.frames = [s for s in frames if s.category == "python_function" and s.name != WAIT]
        annotations = [s for s in frames if s.category == "user_annotation" and s.name != "ProfilerStep#1"]
        self.quiet = [s for s in annotations if not self.announces(s)]
        self.waits = [s for s in frames if s.name == WAIT]
        self.inner = [*outer, *annotations]
        self.copies = [s for s in self.calls if self.purpose[s] == Purpose.COPY and self.waited(s, ops)]

    @staticmethod
    def works(run: Sequence[Span]) -> bool:
        """Whether a run of brief operators without a launch is work."""
        lasts_ns = sum(o.end - o.start for o in run)
        return (len(run) >= MANY and lasts_ns >= PYTHON_FRAME_FLOOR_NS) or lasts_ns >= WORK_NS

    def runs_at(self, at: int) -> bool:
        """In a run that is work, or in a short pause between two neighbours of one."""
        if self.waits_at(at):
            return False
        pairs = [pair for run in self.runs for pair in pairwise(run)]
        paused = any(a.end <= at < b.start and b.start - a.end < PYTHON_FRAME_FLOOR_NS for a, b in pairs)
        return paused or any(covers(o, at) for run in self.runs for o in run)

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
        return dispatching or self.runs_at(at) or any(covers(s, at) for s in self.calls)

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
        if self.runs_at(at):
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


@st.composite
def one_long_gap(draw: st.DrawFn) -> tuple[list[Op], list[Span]]:
    """Brief operators and calls of one thread one after the other, between two launches that make a gap."""
    at, host = 0, [call(-UNIT, 0, correlation=1)]
    rows = st.tuples(st.integers(0, 6), st.integers(1, 5), st.sampled_from(["op"] * 6 + NAMES))
    for pause, length, name in draw(st.lists(rows, min_size=4, max_size=16)):
        start, at = at + UNIT * pause, at + UNIT * (pause + length)
        host.append(operator(start, at, name) if name == "op" else call(start, at, name))
    host.append(call(at + UNIT, at + 2 * UNIT, correlation=2))
    ops = [kernel(-UNIT, 0, correlation=1), kernel(at + 3 * UNIT, at + 4 * UNIT, correlation=2)]
    return ops, host


@given(st.one_of(traces(), one_long_gap()))
def test_causes_agree_with_a_look_at_every_moment(made: tuple[list[Op], list[Span]]) -> None:
    ops, host = made
    ordered = sorted(host, key=lambda s: s.start)
    with one_clock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_runs, "MANY", MANY)
        patch.setattr(operator_runs, "WORK_NS", WORK_NS)
        found = causes(ops, host)
    assert found == dict(twin_causes(sorted(ops, key=lambda o: o.start), ordered))
