"""Which files belong together: ranks of one run, and captures of one workload.

Ranks of a run share their world size, have different numbers and were recorded at the same time. Where files
leave a choice (two runs of the same ranks, with no clock to tell them apart), ranks with the same sequence of
collectives belong together, then those of one folder. Captures are of one workload where they name the same
card and most of their kernels; where kernels were not looked at nothing tells them apart. A copy of a file
belongs to no run: it would be a rank that is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from string import ascii_uppercase

from layers.layer1_gpu_busy.kernel_groups import KernelGroup
from layers.layer1_gpu_busy.ranks import UNKNOWN_RANK, RankTable, rank_table
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis

CLOCKS_APART_NS = 10_000_000_000
"""perfkit's choice: recordings of one run may lie this far apart: its hosts need not share a clock."""
ABSOLUTE_FROM_NS = 10**18
"""Trace times from here on (2001) are since the epoch; smaller ones have no known beginning."""
NAMES_IN_COMMON = 0.5
"""perfkit's choice: share of the kernel names of the trace with fewer of them. Public captures of one
workload share 0.77 to 1.00 of their 30 longest, other pairs at most 0.53."""
NO_KERNELS = (KernelGroup.MEMCPY, KernelGroup.MEMSET, KernelGroup.GRAPH)
"""Names that every workload has."""


@dataclass(frozen=True, slots=True)
class Run:
    """Files of one run at one time: its ranks, or a single file. `name` is run A, run B, … (empty for the
    only one); `work` numbers the workloads (None: no device operation)."""

    name: str
    traces: tuple[TraceAnalysis, ...]
    work: int | None

    @property
    def world_size(self) -> int:
        """How many ranks the run has, as its files say; UNKNOWN_RANK where none does."""
        return max(trace.meta.world_size for trace in self.traces)

    @property
    def ranks(self) -> frozenset[int]:
        """The different ranks that files were given for."""
        return frozenset(trace.meta.rank for trace in self.traces) - {UNKNOWN_RANK}


def group_runs(traces: Sequence[TraceAnalysis]) -> tuple[Run, ...]:
    """The runs that the files belong to, in the order of their first files."""
    runs: list[list[TraceAnalysis]] = []
    for trace in without_copies(traces):
        fitting = [run for run in runs if _fits(trace, run)]
        if fitting:
            max(fitting, key=lambda run: _closeness(trace, run)).append(trace)
        else:
            runs.append([trace])
    works: list[TraceAnalysis] = []
    return tuple(
        Run(_name(i) if len(runs) > 1 else "", tuple(run), _work_of(run[0], works))
        for i, run in enumerate(runs)
    )


def _name(place: int) -> str:
    """By letter, since reports number the commands that were run."""
    return f"run {ascii_uppercase[place] if place < len(ascii_uppercase) else place + 1}"


def rank_tables(runs: Sequence[Run]) -> tuple[RankTable, ...]:
    """One table for each run of which several ranks were given and read whole."""
    return tuple(
        rank_table([rank for trace in run.traces for rank in trace.ranks], run.name)
        for run in runs
        if len({rank.rank for trace in run.traces for rank in trace.ranks}) > 1
    )


def same_work(a: Iterable[str], b: Iterable[str]) -> bool:
    """Whether two sets of kernel names are of one workload; so it is where one is empty."""
    names, others = frozenset(a), frozenset(b)
    fewer = min(len(names), len(others))
    return not fewer or len(names & others) >= NAMES_IN_COMMON * fewer


def without_copies(traces: Sequence[TraceAnalysis]) -> list[TraceAnalysis]:
    """The first file of each capture."""
    first: list[TraceAnalysis] = []
    for trace in traces:
        if not any(trace.same_events(other) for other in first):
            first.append(trace)
    return first


def work_of(trace: TraceAnalysis, runs: Sequence[Run]) -> int | None:
    """The workload of a file, which may be a copy of one that is in a run."""
    return next(run.work for run in runs if any(trace.same_events(other) for other in run.traces))


def claimed_twice(runs: Sequence[Run]) -> list[TraceAnalysis]:
    """Files that name the same rank of the same world at the same time as another one, where neither has
    other ranks beside it: they are ranks of one run that do not know their number."""
    alone = [run.traces[0] for run in runs if len(run.traces) == 1 and run.world_size > 1]
    return [a for a in alone if any(a is not b and _claims_the_same(a, b) for b in alone)]


def _claims_the_same(a: TraceAnalysis, b: TraceAnalysis) -> bool:
    at_one_time = _recorded(a) is not None and _recorded(b) is not None and _apart_ns(a, b) == 0
    return at_one_time and (a.meta.rank, a.meta.world_size) == (b.meta.rank, b.meta.world_size)


def _fits(trace: TraceAnalysis, run: Sequence[TraceAnalysis]) -> bool:
    """Whether a file can be another rank of a run."""
    ranks = {other.meta.rank for other in run}
    return (
        UNKNOWN_RANK not in ranks | {trace.meta.rank}
        and trace.meta.rank not in ranks
        and trace.meta.world_size == run[0].meta.world_size
        and all(_apart_ns(trace, other) <= CLOCKS_APART_NS for other in run)
    )


def _closeness(trace: TraceAnalysis, run: Sequence[TraceAnalysis]) -> tuple[int, bool, bool]:
    """How well a file fits a run that it may belong to: by time, then collectives, then folder."""
    first = run[0]
    same_folder = PurePath(trace.artifact.path).parent == PurePath(first.artifact.path).parent
    return -max(_apart_ns(trace, other) for other in run), _sequence(trace) == _sequence(first), same_folder


def _sequence(trace: TraceAnalysis) -> list[tuple[str, ...]]:
    return [rank.collective_names for rank in trace.ranks]


def _apart_ns(a: TraceAnalysis, b: TraceAnalysis) -> int:
    """Time between two recordings: 0 where they overlap, or where one of them does not say when it was."""
    first, second = _recorded(a), _recorded(b)
    if first is None or second is None:
        return 0
    return max(first[0] - second[1], second[0] - first[1], 0)


def _recorded(trace: TraceAnalysis) -> tuple[int, int] | None:
    """When a file was recorded, since the epoch."""
    if trace.recorded_ns is None or trace.meta.base_time_ns + trace.recorded_ns[0] < ABSOLUTE_FROM_NS:
        return None
    start_ns, end_ns = trace.recorded_ns
    return trace.meta.base_time_ns + start_ns, trace.meta.base_time_ns + end_ns


def _work_of(trace: TraceAnalysis, works: list[TraceAnalysis]) -> int | None:
    """The number of the first workload that the file is alike; of a new one where there is none."""
    if not trace.devices:
        return None
    for number, known in enumerate(works):
        if trace.meta.world_size == known.meta.world_size and _alike(trace, known):
            return number
    works.append(trace)
    return len(works) - 1


def _alike(a: TraceAnalysis, b: TraceAnalysis) -> bool:
    cards, others = _cards(a), _cards(b)
    return (not cards or not others or bool(cards & others)) and same_work(_kernels(a), _kernels(b))


def _cards(trace: TraceAnalysis) -> set[str]:
    return {device.busy.device_name for device in trace.devices} - {""}


def _kernels(trace: TraceAnalysis) -> set[str]:
    return {row.name for device in trace.devices for row in device.kernels if row.group not in NO_KERNELS}
