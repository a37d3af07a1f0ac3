"""Service time against batch size, out of the intervals of requests. Pure.

The members of a batch log one interval each; each batch counts once. The law is that of `evidence.batch_law`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from layers.evidence.batch_law import law_of
from layers.stages.model import BatchFit, Interval, Kind, TimedRequest

FITTED = (Kind.SERVICE, Kind.FIRST_FORWARD)
NS_PER_MS = 1e6


def batch_fits(requests: Iterable[TimedRequest]) -> tuple[BatchFit, ...]:
    """One fit for each stage and kind whose events carry enough different sizes."""
    by_stage: dict[tuple[str, Kind], list[Interval]] = defaultdict(list)
    for r in requests:
        for i in r.intervals:
            if i.batch and i.kind in FITTED:
                by_stage[i.stage, i.kind].append(i)
    fits = (_fit(stage, kind, batches_of(own)) for (stage, kind), own in sorted(by_stage.items()))
    return tuple(fit for fit in fits if fit is not None)


def batches_of(intervals: Iterable[Interval]) -> list[tuple[int, float]]:
    """(size, ms) of each batch: up to `size` intervals of this size that begin before the first of them
    ends."""
    batches: list[tuple[int, float]] = []
    ends: dict[int, tuple[int, int]] = {}
    for i in sorted(intervals, key=lambda i: i.start_ns):
        end_ns, members = ends.get(i.batch, (0, 0))
        if members and members < i.batch and i.start_ns < end_ns:
            ends[i.batch] = end_ns, members + 1
            continue
        ends[i.batch] = i.end_ns, 1
        batches.append((i.batch, i.length_ns / NS_PER_MS))
    return batches


def _fit(stage: str, kind: Kind, batches: Sequence[tuple[int, float]]) -> BatchFit | None:
    law = law_of(batches)
    if law is None:
        return None
    times: dict[int, list[float]] = defaultdict(list)
    for size, ms in batches:
        times[size].append(ms)
    usual = Counter(size for size, _ in batches).most_common(1)[0][0]
    return BatchFit(
        stage=stage,
        kind=kind,
        a_ms=law.a_ms,
        b_ms=law.b_ms,
        p=law.p,
        r2=law.r2,
        batches=len(batches),
        by_size=tuple((size, len(own), fmean(own)) for size, own in sorted(times.items())),
        best_batch=law.best_batch,
        beyond_seen=law.beyond_seen,
        usual_batch=usual,
        gain=law.rate(law.best_batch) / law.rate(usual) - 1,
    )
