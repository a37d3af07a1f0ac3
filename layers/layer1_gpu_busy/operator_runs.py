"""Runs of short operators that launch nothing: the way to the next launch, or work of the host's own.

A few of them between two launches shape the operands of the next kernel (view, reshape, empty). Hundreds in
a row do not: they compute on the host (a loop over the values of a host tensor, an optimizer's counters,
collation), however short each is. A run is all of one thread that no launch interrupts. It is work where
MANY or more take as long as one long operator, or where it takes WORK_NS, whatever their number.

Of 5,337 such runs in 26 public traces 85 have 20 operators or more, and 75 of these take 50 µs or more:
`aten::item` on each value of a tensor (656 to 671 operators, 414 to 495 µs), `add_` on step counters (164 to
266, 152 to 383 µs), tensors made of lists (157 to 161, 360 to 465 µs), boxes filtered on the host (126,
1,461 µs), batches put together (148 to 164, 2.1 to 2.7 ms). Those that prepare a launch have 2 to 19 and take
at most 96 µs: a collective, two nodes of autograd, the projections of an attention (11, 44 to 67 µs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.evidence.intervals import Intervals, union
from parsers.trace_model import I64, PYTHON_FRAME_FLOOR_NS, Bools, HostSpans

MANY = 20
"""Operators in a row from which they no longer lead to a launch. perfkit's choice, from those runs."""
WORK_NS = 4 * PYTHON_FRAME_FLOOR_NS
"""Operator time of a run from which their number does not matter. perfkit's choice: twice the longest of
those that prepare a launch."""


@dataclass(frozen=True, slots=True)
class WorkRuns:
    """Which of the operators stand in runs that are work, and when these were, short pauses included."""

    work: Bools
    when: Intervals


def find_work_runs(operators: HostSpans, launch_ns: I64) -> WorkRuns:
    """The runs among short operators without a launch, of one thread and by start, between its launches."""
    run = np.searchsorted(launch_ns, operators.start_ns)
    edges = np.flatnonzero(np.diff(run, prepend=-1))
    if not len(edges):
        return WorkRuns(np.zeros(0, bool), union(operators.start_ns, operators.end_ns))
    counts = np.diff(np.append(edges, len(run)))
    time_ns = np.add.reduceat(operators.end_ns - operators.start_ns, edges)
    many = (counts >= MANY) & (time_ns >= PYTHON_FRAME_FLOOR_NS)
    work = np.repeat(many | (time_ns >= WORK_NS), counts)
    return WorkRuns(work, _when(operators.select(work), run[work]))


def _when(operators: HostSpans, run: I64) -> Intervals:
    """The operators with the pauses between those of one run, where below the floor of Python frames."""
    next_ns, end_ns = operators.start_ns[1:], operators.end_ns.copy()
    goes_on = (run[1:] == run[:-1]) & (next_ns - end_ns[:-1] < PYTHON_FRAME_FLOOR_NS)
    end_ns[:-1] = np.where(goes_on, np.maximum(end_ns[:-1], next_ns), end_ns[:-1])
    return union(operators.start_ns, end_ns)
