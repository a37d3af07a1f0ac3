"""Service time against batch size: a + b · B^p, and the batch with the highest rate that it predicts. Pure.

The members of a batch log one interval each; each batch counts once. a and b are least squares over batches
for each p of a grid (never negative: time does not fall below nothing); with three sizes p is 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from layers.stages.model import BatchFit, Interval, Kind, TimedRequest

SIZES_FOR_LINE, SIZES_FOR_POWER = 3, 4
"""Different sizes that a line and a power leave one degree of freedom with."""
POWERS = tuple(round(0.25 + 0.05 * step, 2) for step in range(46))
"""0.25 to 2.5: from nearly free batches to attention over all pairs."""
BEYOND = 2
"""Up to twice the largest batch seen: farther a law is no evidence."""
TIED = 0.01
"""Of the highest rate: the smallest batch within it is the best, since a larger one only waits longer."""
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
    sizes = np.array([size for size, _ in batches], np.float64)
    times = np.array([ms for _, ms in batches], np.float64)
    different = len(np.unique(sizes))
    if different < SIZES_FOR_LINE or not np.ptp(times):
        return None
    powers = POWERS if different >= SIZES_FOR_POWER else (1.0,)
    error, p, a, b = min(_at_power(sizes, times, p) for p in powers)
    largest = int(sizes.max())
    reach = np.arange(1, BEYOND * largest + 1)
    rates = reach / np.maximum(a + b * reach**p, np.finfo(np.float64).tiny)
    best = int(reach[np.argmax(rates >= (1 - TIED) * rates.max())])
    usual = Counter(int(size) for size in sizes).most_common(1)[0][0]
    return BatchFit(
        stage=stage,
        kind=kind,
        a_ms=a,
        b_ms=b,
        p=p,
        r2=1 - error / float(((times - times.mean()) ** 2).sum()),
        batches=len(batches),
        by_size=tuple(
            (int(s), int((sizes == s).sum()), float(times[sizes == s].mean())) for s in np.unique(sizes)
        ),
        best_batch=best,
        beyond_seen=best > largest,
        usual_batch=usual,
        gain=float(rates[best - 1] / rates[usual - 1] - 1),
    )


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _at_power(sizes: Numbers, times: Numbers, p: float) -> tuple[float, float, float, float]:
    """(sum of squared errors, p, a, b) of the best a, b >= 0."""
    powered = sizes**p
    spread = powered - powered.mean()
    b = max(0.0, float((spread * times).sum() / (spread**2).sum()))
    a = float(times.mean() - b * powered.mean())
    if a < 0:
        a, b = 0.0, float((powered * times).sum() / (powered**2).sum())
    error = float(((times - a - b * powered) ** 2).sum())
    return error, p, a, b
