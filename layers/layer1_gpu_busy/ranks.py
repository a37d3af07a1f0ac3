"""Several ranks of one run in one table, and who kept the others waiting.

A collective ends on all ranks at about the same time and begins when each arrives, so the k-th
collective is shortest on the rank that arrived last, and what it lasts longer elsewhere is waiting.
Durations need no common clock. Each wait is put down to the last to arrive; a rank that most of all
waiting is put down to is the straggler. So a straggler shows the *least* communication time. The longest
single wait must not decide, since a capture that begins late on one rank looks the same. What this
cannot tell apart: late arrival and less data to exchange (all-to-all with uneven splits), and
collectives of different groups of ranks. Rank 0 is not representative of a run, and a part of the ranks
may lack the one that all others wait for.
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
from parsers.chrome_model import ChromeTrace, DeviceOps
from parsers.errors import UsageError

STRAGGLER_SHARE = 0.5
"""How much of the waiting must be put down to one rank to name it, with and without the longest wait; (D)."""
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
    """All ranks by number. `spread` is maximum minus minimum device-op ratio; `missing` counts the ranks
    that no file was given for (0 as well where no file says how many there are). `straggler` is a row of
    the table or None, and `because` says why, with numbers."""

    rows: tuple[RankRow, ...]
    world_size: int | None
    missing: int
    min_ratio: float | None
    median_ratio: float | None
    max_ratio: float | None
    spread: float | None
    collectives: int | None
    straggler: RankRow | None
    because: str


def rank_trace(trace: ChromeTrace, ops: DeviceOps, busy: DeviceBusy) -> RankTrace:
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


def rank_table(ranks: Sequence[RankTrace]) -> RankTable:
    """Merge two ranks or more; raises UsageError for fewer."""
    if len(ranks) < 2:
        raise UsageError(f"a table of ranks takes two traces or more, not {len(ranks)}")
    ranks = sorted(ranks, key=lambda r: (r.rank, r.source))
    waits = _waits(ranks)
    rows = tuple(_row(rank, i, waits) for i, rank in enumerate(ranks))
    ratios = [row.device_op_ratio for row in rows if row.device_op_ratio is not None]
    world_size = max(rank.world_size for rank in ranks)
    missing = max(world_size - len({rank.rank for rank in ranks}), 0)
    straggler, because = _straggler(ranks, rows, waits, missing)
    return RankTable(
        rows=rows,
        world_size=world_size if world_size > 0 else None,
        missing=missing,
        min_ratio=min(ratios, default=None),
        median_ratio=float(np.median(ratios)) if ratios else None,
        max_ratio=max(ratios, default=None),
        spread=max(ratios) - min(ratios) if ratios else None,
        collectives=len(waits.last) if waits else None,
        straggler=straggler,
        because=because,
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


def _straggler(
    ranks: Sequence[RankTrace], rows: tuple[RankRow, ...], waits: _Waits | None, missing: int
) -> tuple[RankRow | None, str]:
    """The rank that most of the waiting is put down to, if there is one that may be named, and why."""
    if waits is None:
        return None, _why_unmatched([len(rank.collective_names) for rank in ranks])
    first = max(range(len(rows)), key=lambda place: waits.share_of(place))
    share, steady_share = waits.share_of(first), waits.without_longest().share_of(first)
    total_ns = float(waits.of_others.sum())
    window_ns = float(np.median([row.window_ns for row in rows]))
    text = (
        f"of the mean wait of {time_text(total_ns)} in {counted(len(waits.last), 'collective')}, "
        f"{pct(share)} is put down to rank {rows[first].rank}, last to arrive at "
        f"{rows[first].last_arrivals} ({pct(steady_share)} without the longest one; median window "
        f"{time_text(window_ns)}, {len(rows)} ranks)"
    )
    reason = _why_unnamed(ranks, missing)
    if not reason and total_ns <= WORTH_NAMING_SHARE * window_ns:
        reason = f"the wait is at most {pct(WORTH_NAMING_SHARE)} of the window"
    if not reason and min(share, steady_share) <= STRAGGLER_SHARE:
        reason = f"not more than {pct(STRAGGLER_SHARE)} both ways: no one rank steadily holds up the others"
    return (None, f"{text}; {reason}") if reason else (rows[first], text)


def _why_unmatched(counts: list[int]) -> str:
    if not any(counts):
        return "no rank recorded a communication kernel"
    numbers = ", ".join(map(str, counts))
    return f"the ranks' sequences of communication kernels differ ({numbers} of them), so none is matched"


def _why_unnamed(ranks: Sequence[RankTrace], missing: int) -> str:
    """What forbids naming a straggler whatever the numbers are; empty when nothing does."""
    numbers = [rank.rank for rank in ranks]
    if UNKNOWN_RANK in numbers or len(set(numbers)) < len(numbers):
        return "the files do not name distinct ranks"
    if missing:
        return f"a part of the run: {missing} of its ranks are not given, and the last to arrive may be one"
    groups = [rank.smallest_group for rank in ranks if rank.smallest_group is not None]
    if groups and min(groups) < len(ranks):
        return f"some collectives join only {min(groups)} ranks, and a trace does not say which"
    return ""
