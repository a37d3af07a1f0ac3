"""Operators that launched something and whose launches are gone: the sign of a torn file, steps or none.

An operator launches in each of its calls or in none, as good as always, so one of a name that launches
elsewhere and here does not has lost its call, or it ran on the host. Correlation ids tell which: a runtime
counts all calls made to it, recorded or not, and calls that a file has lost leave their numbers out. A
*stretch* runs from one recorded launch of a process to the next (its first and last call of any kind bound
the outer ones). It is torn where enough operators of such names ran in it without a launch, none inside
another, and at least as many numbers are missing from it.

After the last call no number tells. There the operators must be those that make the launches elsewhere: a
file that ends between its operators and its calls, closed again, has all kinds of them, and work on the host
after the last copy has a few. Before the first call nothing tells a lost launch from work on the host.

In 26 public traces the longest stretch with as many numbers missing has 5 such operators. Work on the host
has up to 163 with 34 numbers missing (step counters of an optimizer), and 45 with 5 after the last launch
(boxes filtered), whose names make 0.32 of the launches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.layer1_gpu_busy.host_stack import (
    are_outermost,
    by_thread,
    hold_a_moment,
    process_of_track,
    spans_of,
)
from layers.layer1_gpu_busy.model import LostLaunches
from layers.layer1_gpu_busy.runtime_calls import Calls, Purpose, launched_by
from parsers.chrome_categories import Role
from parsers.trace_model import I64, Bools, DeviceTrace, HostSpans

ENOUGH_OPERATORS = 10
"""Of a stretch, from which it is torn. perfkit's choice: twice what whole files have."""
SAME_WORK = 0.5
"""Share of the launches elsewhere that operators after the last call must make. perfkit's choice."""


@dataclass(frozen=True, slots=True)
class _Torn:
    """Which of the quiet operators lie in torn stretches, how many of them lie in no other one, and how many
    stretches that are."""

    inside: Bools
    operators: int
    stretches: int


def find_lost_launches(trace: DeviceTrace) -> LostLaunches:
    """The torn stretches of a trace, over all its processes.

    A name launches elsewhere where at least half of its operators outside of the stretches in question do.
    """
    calls = _calls(trace)
    launches = calls.spans.select(calls.are(Purpose.LAUNCH))
    operators = spans_of(trace, Role.OPERATOR)
    operators = operators.select(np.isin(operators.track_id, np.unique(launches.track_id)))
    holds = _hold_a_launch(operators, launches)
    made = np.bincount(operators.name_id[holds], minlength=len(trace.names))
    quiet = operators.select(~holds & (made[operators.name_id] > 0))
    asked = _torn(trace, calls, quiet, made)
    outside = np.bincount(quiet.name_id[~asked.inside], minlength=len(made))
    torn = _torn(trace, calls, quiet.select((made >= outside)[quiet.name_id]), made)
    return LostLaunches(int(np.count_nonzero(holds)), torn.operators, torn.stretches)


def _calls(trace: DeviceTrace) -> Calls:
    """All calls: those that put work on the device as LAUNCH, the others as OTHER. Copies and sets without an
    operation had no bytes to move and launched nothing."""
    launched = launched_by(trace, trace.device_ops)
    calls = launched.calls
    launches = calls.are(Purpose.LAUNCH, Purpose.GRAPH_LAUNCH)
    launches[launched.call[launched.known]] = True
    return Calls(calls.spans, np.where(launches, Purpose.LAUNCH, Purpose.OTHER).astype(np.int8))


def _hold_a_launch(operators: HostSpans, launches: HostSpans) -> Bools:
    """Which operators hold a launch of their thread."""
    holds, of_thread = np.zeros(len(operators), bool), by_thread(launches)
    for thread in np.unique(operators.track_id):
        mine = np.flatnonzero(operators.track_id == thread)
        holds[mine] = hold_a_moment(operators.select(mine), of_thread.of(int(thread)).start_ns)
    return holds


def _torn(trace: DeviceTrace, calls: Calls, quiet: HostSpans, made: I64) -> _Torn:
    """The torn stretches; `quiet` are operators without a launch whose names have some, `made` counts the
    operators of each name that launched."""
    process, outer = process_of_track(trace), are_outermost(quiet)
    inside, stretches = np.zeros(len(quiet), bool), 0
    for number in np.unique(process[quiet.track_id]):
        mine = np.flatnonzero(process[quiet.track_id] == number)
        of_process = _by_id(calls, process == number)
        if len(of_process.spans):
            torn, stretch = _torn_of_process(of_process, quiet.select(mine), outer[mine], made)
            inside[mine] = torn[stretch]
            stretches += int(np.count_nonzero(torn))
    return _Torn(inside, int(np.count_nonzero(inside & outer)), stretches)


def _by_id(calls: Calls, tracks: Bools) -> Calls:
    """The calls with an id on the given tracks, one an id, in order of ids: that in which they were made."""
    rows = np.flatnonzero(tracks[calls.spans.track_id] & (calls.spans.correlation > 0))
    _, first = np.unique(calls.spans.correlation[rows], return_index=True)
    return Calls(calls.spans.select(rows[first]), calls.purpose[rows[first]])


def _torn_of_process(calls: Calls, quiet: HostSpans, outer: Bools, made: I64) -> tuple[Bools, I64]:
    """Which stretches are torn, and the stretch of each quiet operator. The last one begins with the last
    call, and one more, never torn, holds what is in none."""
    bounds = np.flatnonzero(calls.are(Purpose.LAUNCH))
    bounds = np.unique(np.concatenate(([0], bounds, [len(calls.spans) - 1])))
    start_ns = np.maximum.accumulate(calls.spans.start_ns[bounds])
    stretch = np.searchsorted(start_ns, quiet.start_ns, side="right") - 1
    stretch = np.where(stretch < 0, len(bounds), stretch)
    operators = np.bincount(stretch[outer], minlength=len(bounds) + 1)
    missing = np.diff(calls.spans.correlation[bounds]) - np.diff(bounds)
    same_work = made[np.unique(quiet.name_id[stretch == len(bounds) - 1])].sum() >= SAME_WORK * made.sum()
    torn = operators >= ENOUGH_OPERATORS
    torn[: len(missing)] &= missing >= operators[: len(missing)]
    torn[len(missing) :] &= (same_work, False)
    return torn, stretch
