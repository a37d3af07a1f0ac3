"""The named ranges that users put around parts of their code, and the device work launched inside each.

Work counts for a range when its launch call started inside it on the same thread, however late it ran. So a
nested range's work counts for the outer one too, and device times of different names may overlap: rows are
not parts of a whole. What other threads of the process launched meanwhile is told apart from it: whether they
worked for the range is not in the trace. Step markers are left out (steps.py has them).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layers.evidence.intervals import Intervals, covered, total, union
from layers.layer1_gpu_busy.annotations import is_step_marker
from layers.layer1_gpu_busy.host_stack import names_that, process_of_track, spans_of
from layers.layer1_gpu_busy.model import PhaseRow
from layers.layer1_gpu_busy.runtime_calls import Launched, launched_by
from parsers.chrome_categories import Role
from parsers.trace_model import I64, Bools, DeviceOps, DeviceTrace, HostSpans

TOP_PHASES = 20
"""Rows that a reader looks through."""

COUNTER = re.compile(r"#\d+$")
"""A running number at the end of a name: ranges that differ only in it are one phase."""


def phase_table(trace: DeviceTrace, ops: DeviceOps) -> tuple[PhaseRow, ...]:
    """The names with the most summed host time, most first; empty where nobody annotated anything."""
    ranges = spans_of(trace, Role.ANNOTATION)
    ranges = ranges.select(~names_that(trace, ranges, is_step_marker))
    launches = _Launches(launched_by(trace, ops), process_of_track(trace))
    names, name_of = _phase_names(trace, ranges)
    time_ns = np.bincount(name_of, weights=ranges.end_ns - ranges.start_ns, minlength=len(names))
    top = np.argsort(-time_ns, kind="stable")[:TOP_PHASES]
    return tuple(_row(names[i], ranges.select(name_of == i), ops, launches) for i in top)


@dataclass(frozen=True, slots=True)
class _Launches:
    """The calls that launched a device's operations, and the process of each track of the trace."""

    by: Launched
    process_of: I64

    def on(self, track: int) -> Bools:
        """Operations that a thread launched."""
        mine: Bools = self.by.known & (self.by.track_id == track)
        return mine

    def beside(self, track: int) -> Bools:
        """Operations that other threads of its process launched."""
        same_process = self.process_of[self.by.track_id] == self.process_of[track]
        others: Bools = self.by.known & (self.by.track_id != track) & same_process
        return others


def _phase_names(trace: DeviceTrace, ranges: HostSpans) -> tuple[list[str], I64]:
    """The phases by name, and the phase of each range."""
    name_ids, which = np.unique(ranges.name_id, return_inverse=True)
    stripped = np.array([COUNTER.sub("", trace.names[i]) for i in name_ids], object)
    names, merged = np.unique(stripped, return_inverse=True)
    return list(names), merged[which]


def _row(name: str, ranges: HostSpans, ops: DeviceOps, launches: _Launches) -> PhaseRow:
    duration_ns = ranges.end_ns - ranges.start_ns
    inside = _launched_within(ranges, launches, launches.on)
    meanwhile = _launched_within(ranges, launches, launches.beside) & ~inside
    return PhaseRow(
        name=name,
        n=len(ranges),
        host_p50_ns=float(np.median(duration_ns)),
        host_total_ns=int(duration_ns.sum()),
        device_busy_ns=total(union(ops.start_ns[inside], ops.end_ns[inside])),
        device_ops=int(inside.sum()),
        meanwhile_busy_ns=total(union(ops.start_ns[meanwhile], ops.end_ns[meanwhile])),
        meanwhile_ops=int(meanwhile.sum()),
    )


def _launched_within(ranges: HostSpans, launches: _Launches, chosen: Callable[[int], Bools]) -> Bools:
    """Which of the operations chosen for each thread were launched while one of its ranges was open."""
    start_ns = launches.by.start_ns
    within = np.zeros(len(start_ns), bool)
    for track in np.unique(ranges.track_id):
        here = ranges.select(ranges.track_id == track)
        within |= chosen(int(track)) & _within(union(here.start_ns, here.end_ns), start_ns)
    return within


def _within(of: Intervals, at_ns: I64) -> Bools:
    return covered(of, at_ns, at_ns + 1) > 0
