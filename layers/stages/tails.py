"""What sets the slowest requests of a run apart from the others, and whom short ones wait beside. Pure.

Evidence for symptoms, never a cause: a slow request that worked five times as long as is usual was long, or
met something; one whose decoding was interrupted by first forwards of others more often than that of the rest
waited for batches to be put together anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import fmean, median

import numpy as np

from layers.evidence.statistics import minimum_n_for_quantile
from layers.stages.model import WORK, Interval, Kind, ShortWaits, Tail, TimedRequest
from layers.stages.signs import LEAST_ITEMS, Behind, is_slow

QUANTILES = (0.99, 0.95)
"""The first one that n gives an interval."""
QUARTER = 0.25
"""Of the requests: short ones, and long ones."""
NS_PER_MS, NS_PER_S = 1e6, 1e9


def tail_of(requests: Sequence[TimedRequest]) -> Tail | None:
    """Of complete requests; None for too few."""
    n = len(requests)
    quantile = next((q for q in QUANTILES if n >= minimum_n_for_quantile(q)), None)
    if quantile is None:
        return None
    lengths = [r.length_ns for r in requests]
    limit = float(np.quantile(lengths, quantile))
    slow = [r for r in requests if r.length_ns >= limit]
    others = [r for r in requests if r.length_ns < limit]
    usual = float(np.median(lengths))
    return Tail(
        quantile=quantile,
        n=n,
        slow=len(slow),
        p50_ms=usual / NS_PER_MS,
        at_ms=limit / NS_PER_MS,
        long_share=_long_share(requests, slow),
        joins_slow=_joins_per_s(requests, slow),
        joins_others=_joins_per_s(requests, others),
    )


def _long_share(requests: Sequence[TimedRequest], slow: Sequence[TimedRequest]) -> float | None:
    """Of the slow requests, those that worked far longer than usual somewhere, or waited mostly beside such
    work; None where too little work is logged to say what is usual."""
    works: dict[tuple[str, Kind], list[Interval]] = defaultdict(list)
    for r in requests:
        for i in r.intervals:
            if i.kind in WORK:
                works[i.stage, i.kind].append(i)
    usual = {key: median(i.length_ns for i in own) for key, own in works.items() if len(own) >= LEAST_ITEMS}
    if not usual:
        return None
    far = [i for key, middle in usual.items() for i in works[key] if is_slow(i, middle)]
    behind = Behind(far)
    return sum(_is_long(r, usual, behind) for r in slow) / len(slow)


def _is_long(r: TimedRequest, usual: dict[tuple[str, Kind], float], behind: Behind) -> bool:
    if any(is_slow(i, usual.get((i.stage, i.kind), 0.0)) for i in r.intervals):
        return True
    waits = [i for i in r.intervals if i.kind is Kind.QUEUE]
    waited = sum(i.length_ns for i in waits)
    return waited > r.length_ns / 2 and sum(map(behind.longest_ns, waits)) > waited / 2


def _joins_per_s(requests: Iterable[TimedRequest], of: Sequence[TimedRequest]) -> float | None:
    """First forwards of others that begin in a second of decoding of these; None where either is not
    logged."""
    begins = sorted(i.start_ns for r in requests for i in r.intervals if i.kind is Kind.FIRST_FORWARD)
    decodes = [i for r in of for i in r.intervals if i.kind is Kind.DECODE]
    decoded_ns = sum(i.length_ns for i in decodes)
    if not begins or not decoded_ns:
        return None
    joins = sum(bisect_left(begins, i.end_ns) - bisect_left(begins, i.start_ns + 1) for i in decodes)
    return joins * NS_PER_S / decoded_ns


def short_waits(requests: Sequence[TimedRequest]) -> ShortWaits | None:
    """How the shortest quarter waits: by the length of the input where every request tells it, else by its
    own work; None where there are too few, all are of one size, or none works."""
    told = all(r.length is not None for r in requests)
    sizes = {r.request: (r.length or 0.0) if told else _worked_ns(r) for r in requests}
    ordered = sorted(requests, key=lambda r: sizes[r.request])
    quarter = int(len(ordered) * QUARTER)
    short, long = ordered[:quarter], ordered[len(ordered) - quarter :]
    if quarter < LEAST_ITEMS or not sum(map(_worked_ns, short)):
        return None
    if sizes[short[-1].request] >= sizes[long[0].request]:
        return None
    waited_ns, beside_ns, expected_ns = _beside(requests, short, long)
    return ShortWaits(
        by="input length" if told else "own work",
        n=quarter,
        work_ms=fmean(map(_worked_ns, short)) / NS_PER_MS,
        wait_ms=waited_ns / quarter / NS_PER_MS,
        beside_share=beside_ns / waited_ns if waited_ns else 0.0,
        expected_share=expected_ns / waited_ns if waited_ns else 0.0,
    )


def _worked_ns(r: TimedRequest) -> int:
    return sum(i.length_ns for i in r.intervals if i.kind in WORK)


def _beside(
    requests: Sequence[TimedRequest], short: Sequence[TimedRequest], long: Sequence[TimedRequest]
) -> tuple[int, float, float]:
    """How long the short ones wait; how much of it beside work of long ones in that stage; and how much would
    be if they came at any time."""
    begin, end = min(r.start_ns for r in requests), max(r.end_ns for r in requests)
    by_stage: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for r in long:
        for i in r.intervals:
            if i.kind in WORK:
                by_stage[i.stage].append((i.start_ns, i.end_ns))
    covers = {stage: _Cover(spans) for stage, spans in by_stage.items()}
    waits = [i for r in short for i in r.intervals if i.kind is Kind.QUEUE and i.length_ns]
    nowhere = _Cover([])
    beside = sum(covers.get(i.stage, nowhere).within(i.start_ns, i.end_ns) for i in waits)
    share = {stage: cover.within(begin, end) / max(1, end - begin) for stage, cover in covers.items()}
    expected = sum(i.length_ns * share.get(i.stage, 0.0) for i in waits)
    return sum(i.length_ns for i in waits), beside, expected


class _Cover:
    """The union of spans, to look up how much of a stretch it covers."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]
        self._before = [0, *accumulate(end - start for start, end in merged)]

    def within(self, start: int, end: int) -> int:
        return self._until(end) - self._until(start)

    def _until(self, at: int) -> int:
        """Covered time before a moment."""
        place = bisect_left(self._starts, at)
        if not place:
            return 0
        return self._before[place - 1] + min(at, self._ends[place - 1]) - self._starts[place - 1]
