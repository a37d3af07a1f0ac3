"""Operators that launched something and whose launches are gone: the sign of a torn file, steps or none.

An operator launches in each of its calls or in none, as good as always, so one of a name that launches
elsewhere and here does not has lost its call, or it had nothing to launch: it ran on the host, or its tensors
were empty. Time and numbers tell which. What launches nothing is over sooner; and a runtime counts all calls
made to it, recorded or not, so that calls which a file has lost leave their numbers out.

A *stretch* runs from one recorded launch of a process to the next (its first and last call of any kind bound
the outer ones). It is torn where enough operators of such names ran in it without a launch, none inside
another, most of them about as long as where they launch, and about as many numbers are missing from it as so
many launches take elsewhere. Operations whose calls were never recorded (of a driver's interface) are not
lost, and stand for as many operators and numbers.

After the last call no number tells. There the operators must be those that make the launches elsewhere: a
file that ends between its operators and its calls, closed again, has all kinds of them, and work on the host
after the last copy has a few. Before the first call nothing tells a lost launch from work on the host.

In 49 public traces, of stretches with 5 such operators or more, none misses more than 0.60 of the numbers,
and those that miss more than a tenth take at most 0.19 of the time: step counters of an optimizer, operators
that find nothing to do. Where launches are cut out with their operations, nearly all miss 0.87 of the numbers
or more and take 0.9 of the time or more, unless longer work on the host lies beside the hole.
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
from parsers.trace_model import I64, PROCESS_SHIFT, Bools, DeviceTrace, HostSpans

ENOUGH_OPERATORS = 10
"""Of a stretch, from which it is torn. perfkit's choice."""
LIKE_LAUNCHING = 0.75
"""Share of the time and of the numbers that launching takes elsewhere, from which it is the same. perfkit's
choice, between whole files and torn ones."""
SAME_WORK = 0.5
"""Share of the launches elsewhere that operators after the last call must make. perfkit's choice."""


@dataclass(frozen=True, slots=True)
class _Launching:
    """What the operators do that launch: how many of each name there are, and how long they take at the
    median; both of shape (names,)."""

    made: I64
    typical_ns: I64


@dataclass(frozen=True, slots=True)
class _Stretches:
    """The stretches of a process: `of` is that of each quiet operator, `operators` counts those in each that
    lie in none other, `lost` those of them that no operation stands for, `missing` the numbers. The last two
    stretches have no `missing`: that which begins with the last call, and one that holds what is in none.
    """

    of: I64
    operators: I64
    lost: I64
    missing: I64


@dataclass(frozen=True, slots=True)
class _Torn:
    """Which of the quiet operators lie in torn stretches, how many have lost a launch there, and how many
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
    launching = _launching(operators.select(holds), len(trace.names))
    quiet = operators.select(~holds & (launching.made[operators.name_id] > 0))
    asked = _torn(trace, calls, quiet, launching)
    outside = np.bincount(quiet.name_id[~asked.inside], minlength=len(trace.names))
    torn = _torn(trace, calls, quiet.select((launching.made >= outside)[quiet.name_id]), launching)
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


def _launching(operators: HostSpans, names: int) -> _Launching:
    length_ns = operators.end_ns - operators.start_ns
    order = np.lexsort((length_ns, operators.name_id))
    made = np.bincount(operators.name_id, minlength=names)
    found, first, typical_ns = made > 0, np.cumsum(made) - made, np.zeros(names, np.int64)
    typical_ns[found] = length_ns[order][(first + made // 2)[found]]
    return _Launching(made, typical_ns)


def _torn(trace: DeviceTrace, calls: Calls, quiet: HostSpans, launching: _Launching) -> _Torn:
    """The torn stretches; `quiet` are operators without a launch whose names have some."""
    process = process_of_track(trace)
    orphans = np.setdiff1d(trace.device_ops.correlation, calls.spans.correlation)
    inside, lost = np.zeros(len(quiet), bool), np.zeros(0, np.int64)
    for number in np.unique(process[quiet.track_id]):
        mine = np.flatnonzero(process[quiet.track_id] == number)
        of_process = _by_id(calls, process == number)
        if len(of_process.spans):
            quiet_here = quiet.select(mine)
            outer = are_outermost(quiet_here)
            stretches = _stretches(of_process, orphans, quiet_here, outer)
            torn = _are_torn(stretches, quiet_here, outer, launching)
            inside[mine] = torn[stretches.of]
            lost = np.append(lost, stretches.lost[torn])
    return _Torn(inside, int(lost.sum()), len(lost))


def _by_id(calls: Calls, tracks: Bools) -> Calls:
    """The calls with an id on the given tracks, one an id, in order of ids: that in which they were made."""
    rows = np.flatnonzero(tracks[calls.spans.track_id] & (calls.spans.correlation > 0))
    _, first = np.unique(calls.spans.correlation[rows], return_index=True)
    return Calls(calls.spans.select(rows[first]), calls.purpose[rows[first]])


def _stretches(calls: Calls, orphans: I64, quiet: HostSpans, outer: Bools) -> _Stretches:
    """`orphans`: ids of operations without a call, ascending."""
    bounds = np.flatnonzero(calls.are(Purpose.LAUNCH))
    bounds = np.unique(np.concatenate(([0], bounds, [len(calls.spans) - 1])))
    ids, start_ns = calls.spans.correlation[bounds], np.maximum.accumulate(calls.spans.start_ns[bounds])
    of = np.searchsorted(start_ns, quiet.start_ns, side="right") - 1
    of = np.where(of < 0, len(bounds), of)
    operators = np.bincount(of[outer], minlength=len(bounds) + 1)
    next_process = ((ids[-1] >> PROCESS_SHIFT) + 1) << PROCESS_SHIFT
    known = np.append(np.diff(np.searchsorted(orphans, np.append(ids, next_process))), 0)
    missing = np.diff(ids) - np.diff(bounds) - known[: len(bounds) - 1]
    return _Stretches(of, operators, operators - known, missing)


def _are_torn(stretches: _Stretches, quiet: HostSpans, outer: Bools, launching: _Launching) -> Bools:
    """Which stretches are torn; `outer` are the operators that lie in none other."""
    between = len(stretches.missing)
    as_long = quiet.end_ns - quiet.start_ns >= LIKE_LAUNCHING * launching.typical_ns[quiet.name_id]
    long = np.bincount(stretches.of[outer & as_long], minlength=between + 2)
    torn = (stretches.lost >= ENOUGH_OPERATORS) & (2 * long >= stretches.operators)
    elsewhere = stretches.missing[stretches.operators[:between] == 0]
    a_launch = 1 + (float(np.median(elsewhere)) if len(elsewhere) else 0.0)
    torn[:between] &= stretches.missing >= LIKE_LAUNCHING * a_launch * stretches.lost[:between]
    after = np.unique(quiet.name_id[stretches.of == between])
    same_work = launching.made[after].sum() >= SAME_WORK * launching.made.sum()
    torn[between:] &= (same_work, False)
    return torn
