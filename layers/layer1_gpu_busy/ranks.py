"""Several ranks of one run in one table, and who kept the others waiting.

A collective ends on all ranks at about the same time and begins when each arrives, so the k-th
collective is shortest on the rank that arrived last, and what it lasts longer elsewhere is waiting.
Durations need no common clock. Each wait is put down to the last to arrive; a rank that most of all
waiting is put down to is the suspect. So a straggler shows the *least* communication time. It is proven
only if the longest single wait does not decide, since a capture that begins late on one rank looks the
same. What this cannot tell apart: late arrival and less data to exchange (all-to-all with uneven splits),
and collectives of different groups of ranks. Rank 0 is not representative of a run, and a part of the
ranks may lack the one that all others wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import DeviceBusy, Overlap
from layers.layer1_gpu_busy.overlap import communication_overlap
from parsers.errors import UsageError
from parsers.trace_model import DeviceOps, DeviceTrace

STRAGGLER_SHARE = 0.5
"""How much of the waiting must be put down to one rank to suspect it, and without the longest wait too to
name it. perfkit's proposal."""
WORTH_NAMING_SHARE = 0.05
"""Mean wait over median window up to which no rank is named; TraceLens' limit of exposed communication."""

UNKNOWN_RANK = -1
NOBODY = -1


@dataclass(frozen=True, slots=True)
class RankTrace:
    """What the table needs of one rank's trace: its communication kernels in time order, and busy times.

    `smallest_group` is the smallest group of ranks that a collective records; None where none does.
    """

    rank: int
    world_size: int
    source: str
    busy: DeviceBusy
    overlap: Overlap | None
    collective_names: tuple[str, ...]
    collective_ns: tuple[int, ...]
    smallest_group: int | None


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank. `wait_ns`: how much longer its collectives were than the shortest of each;
    `last_arrivals`: how many it was the last to join; `caused_wait_ns`: the others' mean wait in those.
    All three are None where the ranks' collectives could not be matched."""

    rank: int
    source: str
    device: int
    events: int
    window_ns: int
    device_op_ratio: float | None
    communication_ns: int
    computation_ns: int
    wait_ns: int | None
    last_arrivals: int | None
    caused_wait_ns: float | None


@dataclass(frozen=True, slots=True)
class RankTable:
    """All ranks of one run by number. `name` tells runs of one command apart. `spread` is maximum minus
    minimum device-op ratio; `missing` counts the ranks that no file was given for (0 as well where no file
    says how many there are). `suspect` is the rank that most of the waiting is put down to, None where there
    is none; `straggler` is the same rank where that is proven. `because` says why, with numbers."""

    name: str
    rows: tuple[RankRow, ...]
    world_size: int | None
    missing: int
    min_ratio: float | None
    median_ratio: float | None
    max_ratio: float | None
    spread: float | None
    collectives: int | None
    suspect: RankRow | None
    straggler: RankRow | None
    because: str


def straggler_text(table: RankTable) -> str:
    """Who kept the others waiting, how sure that is, and why."""
    if table.suspect is None:
        return f"none named: {table.because}"
    likely = "" if table.straggler is not None else "most likely "
    return f"{likely}rank {table.suspect.rank}: {table.because}"


def rank_trace(trace: DeviceTrace, ops: DeviceOps, busy: DeviceBusy) -> RankTrace:
    """One rank's part of the table, from one device of its trace; small, whatever the trace's size."""
    communicates = in_groups(group_codes(trace, ops), [KernelGroup.COMMUNICATION])
    groups = [c.group_size for c in trace.collectives if c.device == busy.device and c.group_size > 0]
    return RankTrace(
        rank=trace.meta.rank,
        world_size=trace.meta.world_size,
        source=trace.path,
        busy=busy,
        overlap=communication_overlap(trace, ops),
        collective_names=tuple(trace.names[i] for i in ops.name_id[communicates]),
        collective_ns=tuple((ops.end_ns - ops.start_ns)[communicates].tolist()),
        smallest_group=min(groups, default=None),
    )


def rank_table(ranks: Sequence[RankTrace], name: str = "") -> RankTable:
    """Merge two ranks or more of one run; raises UsageError for fewer."""
    if len(ranks) < 2:
        raise UsageError(f"a table of ranks takes two traces or more, not {len(ranks)}")
    ranks = sorted(ranks, key=lambda r: (r.rank, r.source))
    waits = _waits(ranks)
    rows = tuple(_row(rank, i, waits) for i, rank in enumerate(ranks))
    ratios = [row.device_op_ratio for row in rows if row.device_op_ratio is not None]
    world_size = max(rank.world_size for rank in ranks)
    missing = max(world_size - len({rank.rank for rank in ranks}), 0)
    blamed = _blame(ranks, rows, waits, missing)
    return RankTable(
        name=name,
        rows=rows,
        world_size=world_size if world_size > 0 else None,
        missing=missing,
        min_ratio=min(ratios, default=None),
        median_ratio=float(np.median(ratios)) if ratios else None,
        max_ratio=max(ratios, default=None),
        spread=max(ratios) - min(ratios) if ratios else None,
        collectives=len(waits.last) if waits else None,
        suspect=blamed.suspect,
        straggler=blamed.suspect if blamed.proven else None,
        because=blamed.because,
    )


@dataclass(frozen=True, slots=True)
class _Waits:
    """`wait_ns`, shape (ranks, collectives), and which row was `last` to join, shape (collectives,): NOBODY
    where all took equally long."""

    wait_ns: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]

    @property
    def of_others(self) -> npt.NDArray[np.float64]:
        """Mean wait of the ranks other than the last, for each collective."""
        mean: npt.NDArray[np.float64] = self.wait_ns.sum(axis=0) / (len(self.wait_ns) - 1)
        return mean

    def caused_by(self, place: int) -> float:
        """The others' mean wait in the collectives that a row was the last to join."""
        return float(self.of_others[self.last == place].sum())

    def share_of(self, place: int) -> float:
        """That, over the mean wait in all collectives; 0 where nobody waited."""
        total_ns = float(self.of_others.sum())
        return self.caused_by(place) / total_ns if total_ns else 0.0

    def without_longest(self) -> _Waits:
        """The same without the collective that was waited for most."""
        others = np.delete(np.arange(len(self.last)), self.of_others.argmax())
        return _Waits(self.wait_ns[:, others], self.last[others])


def _waits(ranks: Sequence[RankTrace]) -> _Waits | None:
    """Waiting in each collective; None unless all ranks recorded the same sequence of them."""
    names = ranks[0].collective_names
    if not names or any(rank.collective_names != names for rank in ranks):
        return None
    duration_ns = np.array([rank.collective_ns for rank in ranks], np.int64)
    wait_ns = duration_ns - duration_ns.min(axis=0)
    return _Waits(wait_ns, np.where(wait_ns.any(axis=0), duration_ns.argmin(axis=0), NOBODY))


def _row(rank: RankTrace, place: int, waits: _Waits | None) -> RankRow:
    busy, overlap = rank.busy, rank.overlap
    return RankRow(
        rank=rank.rank,
        source=rank.source,
        device=busy.device,
        events=busy.events,
        window_ns=busy.device_window.window.length_ns,
        device_op_ratio=busy.device_window.device_op_ratio,
        communication_ns=overlap.communication_ns if overlap else 0,
        computation_ns=overlap.computation_ns if overlap else busy.device_window.kernel_ns,
        wait_ns=int(waits.wait_ns[place].sum()) if waits else None,
        last_arrivals=int((waits.last == place).sum()) if waits else None,
        caused_wait_ns=waits.caused_by(place) if waits else None,
    )


@dataclass(frozen=True, slots=True)
class _Blame:
    """The rank that most of the waiting is put down to (None: none is), whether that is proven, and why."""

    suspect: RankRow | None
    proven: bool
    because: str


def _blame(
    ranks: Sequence[RankTrace], rows: tuple[RankRow, ...], waits: _Waits | None, missing: int
) -> _Blame:
    if waits is None:
        return _Blame(None, False, _why_unmatched([len(rank.collective_names) for rank in ranks]))
    first = max(range(len(rows)), key=waits.share_of)
    share, steady_share = waits.share_of(first), waits.without_longest().share_of(first)
    wait_ns = float(waits.of_others.sum())
    window_ns = float(np.median([row.window_ns for row in rows]))
    waited = (
        f"mean wait {time_text(wait_ns)} of a median window of {time_text(window_ns)}, {len(rows)} ranks, "
        f"{counted(len(waits.last), 'collective')}"
    )
    if wait_ns <= WORTH_NAMING_SHARE * window_ns:
        return _Blame(None, False, f"the wait is at most {pct(WORTH_NAMING_SHARE)} of the window ({waited})")
    blame = (
        f"last to arrive at {rows[first].last_arrivals} of {len(waits.last)} collectives and blamed for "
        f"{pct(share)} of the waiting"
    )
    if max(share, steady_share) <= STRAGGLER_SHARE:
        most = f"the most is rank {rows[first].rank}, {blame}"
        return _Blame(None, False, f"no one rank holds up the others; {most} ({waited})")
    text = f"{blame}, {pct(steady_share)} without the longest one ({waited})"
    doubt = _doubt(ranks, missing, min(share, steady_share))
    return _Blame(rows[first], not doubt, f"{text}. Not proven, because {doubt}" if doubt else text)


def _why_unmatched(counts: list[int]) -> str:
    if not any(counts):
        return "no rank recorded a communication kernel"
    numbers = ", ".join(map(str, counts))
    return f"the ranks' sequences of communication kernels differ ({numbers} of them), so none is matched"


def _doubt(ranks: Sequence[RankTrace], missing: int, share: float) -> str:
    """What leaves a suspect unproven; empty when nothing does. `share`: the smaller one of its blame."""
    numbers = [rank.rank for rank in ranks]
    groups = [rank.smallest_group for rank in ranks if rank.smallest_group is not None]
    if UNKNOWN_RANK in numbers or len(set(numbers)) < len(numbers):
        return "the files do not name distinct ranks"
    if missing:
        return f"{counted(missing, 'rank')} of the run are not given, and the last to arrive may be one"
    if groups and min(groups) < len(ranks):
        return f"some collectives join only {min(groups)} ranks, and a trace does not say which"
    if share <= STRAGGLER_SHARE:
        return f"it takes more than {pct(STRAGGLER_SHARE)} both with the longest one and without"
    return ""
