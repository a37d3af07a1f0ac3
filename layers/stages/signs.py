"""Signs of why requests wait: slow items, and built ones behind an unfinished one. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from layers.stages.model import WORK, HeadOfLine, Interval, Kind, SlowItem, TimedRequest
from layers.stages.vocabulary import HAND_OVER

SLOW_TIMES = 5.0
"""perfkit's choice: of 128 log-normal times that differ by half (sigma 0.5) one in 13 runs has such a one."""
LEAST_ITEMS = 20
"""A median of fewer says little of what is usual."""
NS_PER_MS = 1e6
Owned = tuple[str, Interval]


def slow_items(requests: Iterable[TimedRequest]) -> tuple[SlowItem, ...]:
    """Of each stage and kind of work with one: the worst first."""
    works: dict[tuple[str, Kind], list[Owned]] = defaultdict(list)
    waits: dict[str, list[Interval]] = defaultdict(list)
    for r in requests:
        for i in r.intervals:
            if i.kind in WORK:
                works[i.stage, i.kind].append((r.request, i))
            elif i.kind is Kind.QUEUE:
                waits[i.stage].append(i)
    found = (_slow(stage, kind, own, waits[stage]) for (stage, kind), own in works.items())
    return tuple(sorted((one for one in found if one), key=lambda s: -s.max_ms))


def _slow(stage: str, kind: Kind, own: Sequence[Owned], waits: Sequence[Interval]) -> SlowItem | None:
    middle = median(i.length_ns for _, i in own)
    slow = [one for one in own if is_slow(one[1], middle)]
    if len(own) < LEAST_ITEMS or not slow:
        return None
    request, worst = max(slow, key=lambda one: one[1].length_ns)
    waited = sum(w.length_ns for w in waits)
    behind = Behind(i for _, i in slow)
    beside = sum(map(behind.longest_ns, waits))
    return SlowItem(
        stage=stage,
        kind=kind,
        count=len(slow),
        n=len(own),
        median_ms=middle / NS_PER_MS,
        max_ms=worst.length_ns / NS_PER_MS,
        request=request,
        waiting_share=beside / waited if waited else 0.0,
    )


def is_slow(interval: Interval, middle_ns: float) -> bool:
    """Whether it took SLOW_TIMES what is usual."""
    return middle_ns > 0 and interval.length_ns >= SLOW_TIMES * middle_ns


class Behind:
    """Works in the order of their beginnings, to look up how long a wait ran beside one of them."""

    def __init__(self, works: Iterable[Interval]) -> None:
        self._works = sorted(works, key=lambda i: i.start_ns)
        self._starts = [i.start_ns for i in self._works]
        self._longest = max((i.length_ns for i in self._works), default=0)

    def longest_ns(self, wait: Interval, begun_before: int | None = None) -> int:
        """The longest overlap with one of them: what several cover together is not added up."""
        first = bisect_left(self._starts, wait.start_ns - self._longest)
        last = bisect_left(self._starts, wait.end_ns if begun_before is None else begun_before)
        return max((overlap_ns(wait, i) for i in self._works[first:last]), default=0)


def overlap_ns(one: Interval, other: Interval) -> int:
    """The time that both cover."""
    return max(0, min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns))


def heads_of_line(requests: Sequence[TimedRequest]) -> tuple[HeadOfLine, ...]:
    """Of each stage that builds requests and hands them over in their order."""
    builds: dict[str, list[Interval]] = defaultdict(list)
    held: dict[str, list[Interval]] = defaultdict(list)
    for r in requests:
        for i in r.intervals:
            if i.kind is Kind.BUILD:
                builds[i.stage].append(i)
            elif i.part == HAND_OVER:
                held[i.stage].append(i)
    return tuple(_head(stage, waits, builds[stage]) for stage, waits in held.items() if builds[stage])


def _head(stage: str, waits: Sequence[Interval], builds: Sequence[Interval]) -> HeadOfLine:
    """A wait lies behind a build that began before the waiting one's own and was not finished yet."""
    own_build, all_builds = {b.end_ns: b.start_ns for b in builds}, Behind(builds)
    behind = [all_builds.longest_ns(w, own_build.get(w.start_ns, w.start_ns)) for w in waits]
    waited = sum(w.length_ns for w in waits)
    return HeadOfLine(
        stage=stage,
        held=sum(ns > 0 for ns in behind),
        n=len(waits),
        share=sum(behind) / waited if waited else 0.0,
        mean_ms=waited / len(waits) / NS_PER_MS,
    )
