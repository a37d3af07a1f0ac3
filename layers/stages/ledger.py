"""One run's ledger: rows by stage and kind, shares, waits that nothing works under, the residual. Pure.

Intervals of a request may overlap (a vocoder speaks while decoding goes on; hops of a stream), so what is
covered is a union, never a sum, and the overlap is told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

import numpy as np

from layers.evidence.measurement import Artifact
from layers.evidence.statistics import minimum_n_for_quantile
from layers.stages.batch_fit import batch_fits
from layers.stages.model import (
    INTENDED,
    SPLIT,
    WORK,
    Counts,
    Interval,
    Kind,
    Outcome,
    Row,
    RunLedger,
    StageQueue,
    TimedRequest,
)
from layers.stages.occupancy import mean_in_flight, steadiness
from layers.stages.requests import TimedRun
from layers.stages.signs import heads_of_line, slow_items
from layers.stages.tails import short_waits, tail_of

NS_PER_MS = 1e6
EPOCH_NS = 10**18
"""September 2001: a clock below it does not count from 1970."""
KIND_ORDER = list(Kind)
Key = tuple[str, Kind, str, bool]
Span = tuple[int, int]
Chosen = Callable[[Interval], bool]


def ledger_of(run: TimedRun, artifacts: Sequence[Artifact]) -> RunLedger | None:
    """The ledger of a run; None where no request is complete."""
    whole = complete(run.requests)
    if not whole:
        return None
    total_ns = sum(r.length_ns for r in whole)
    window_ns = max(1, run.end_ns - run.start_ns)
    order = stage_order(whole)
    rows = _rows(whole, total_ns, window_ns, order)
    covered = covered_ns(whole)
    return RunLedger(
        run=run.run,
        counts=_counts(run.requests),
        window_ms=window_ns / NS_PER_MS,
        in_flight=mean_in_flight(run.requests, run.start_ns, run.end_ns),
        e2e_ms=_row(("", Kind.SERVICE, "", False), [r.length_ns for r in whole], 1.0, window_ns),
        rows=rows,
        queues=queues_of(whole, total_ns, order),
        split=split_of(whole, total_ns),
        residual_share=1 - covered / total_ns,
        overlap_share=sum(row.share for row in rows) - covered / total_ns,
        artifacts=tuple(artifacts),
        steadiness=steadiness(run),
        fits=batch_fits(whole),
        slow=slow_items(whole),
        head_of_line=heads_of_line(whole),
        tail=tail_of(whole),
        short=short_waits(whole),
        unknown_events=run.rules.unknown,
        negative_hops=run.negative_hops,
        longest_silence_ms=(run.silence[1] - run.silence[0]) / NS_PER_MS,
        silence_share=_silent_ns(whole, run.silence) / total_ns,
        idle_share=1 - union_ns((r.start_ns, r.end_ns) for r in run.requests) / window_ns,
        reused_ids=run.reused_ids,
        mixed=run.mixed,
        pids=run.pids,
        began_ns=run.start_ns if run.start_ns > EPOCH_NS else None,
        ended_ns=run.end_ns if run.start_ns > EPOCH_NS else None,
        first_output_ends_prefill=run.rules.first_output_ends_prefill,
    )


def complete(requests: Iterable[TimedRequest]) -> list[TimedRequest]:
    """Those that shares are of."""
    return [r for r in requests if r.outcome is Outcome.COMPLETE and r.length_ns > 0]


def _counts(requests: Iterable[TimedRequest]) -> Counts:
    by = Counter(r.outcome for r in requests)
    told = sum(r.outcome is Outcome.SHED and r.told for r in requests)
    return Counts(by[Outcome.COMPLETE], by[Outcome.SHED], by[Outcome.FAILED], by[Outcome.CUT], told)


def stage_order(requests: Iterable[TimedRequest]) -> list[str]:
    """Stages in the order in which requests leave them, on average; hops are none."""
    left: dict[str, list[int]] = defaultdict(list)
    for r in requests:
        last = {i.stage: i.end_ns for i in sorted(r.intervals, key=lambda i: i.end_ns) if i.stage == i.to}
        for stage, at_ns in last.items():
            left[stage].append(at_ns - r.start_ns)
    return sorted(left, key=lambda stage: fmean(left[stage]))


def _rows(
    requests: Sequence[TimedRequest], total_ns: int, window_ns: int, order: Sequence[str]
) -> tuple[Row, ...]:
    lengths: dict[Key, list[int]] = defaultdict(list)
    covered: Counter[Key] = Counter()
    for r in requests:
        own: dict[Key, list[Interval]] = defaultdict(list)
        for i in r.intervals:
            own[i.stage, i.kind, i.part, i.intended].append(i)
        for key, intervals in own.items():
            lengths[key] += [i.length_ns for i in intervals]
            covered[key] += union_ns(_within(r, intervals))
    rows = [_row(key, values, covered[key] / total_ns, window_ns) for key, values in lengths.items()]
    place = {stage: at for at, stage in enumerate(order)}
    return tuple(sorted(rows, key=lambda r: (place.get(r.stage, len(place)), KIND_ORDER.index(r.kind))))


def _row(key: Key, lengths_ns: Sequence[int], share: float, window_ns: int) -> Row:
    stage, kind, part, intended = key
    taken = sum(lengths_ns)
    return Row(
        stage=stage,
        kind=kind,
        part=part,
        n=len(lengths_ns),
        mean_ms=taken / len(lengths_ns) / NS_PER_MS,
        p50_ms=_quantile_ms(lengths_ns, 0.5),
        p95_ms=_quantile_ms(lengths_ns, 0.95),
        max_ms=max(lengths_ns) / NS_PER_MS,
        share=share,
        held=taken / window_ns,
        intended=intended,
        total_ms=taken / NS_PER_MS,
    )


def _quantile_ms(lengths_ns: Sequence[int], quantile: float) -> float | None:
    """Linear between neighbours, as SGLang-Omni's own ledger; None where n is too small for an interval."""
    if len(lengths_ns) < minimum_n_for_quantile(quantile):
        return None
    return float(np.quantile(np.asarray(lengths_ns, np.float64), quantile)) / NS_PER_MS


def _silent_ns(requests: Iterable[TimedRequest], silence: Span) -> int:
    return sum(max(0, min(r.end_ns, silence[1]) - max(r.start_ns, silence[0])) for r in requests)


def _any(_: Interval) -> bool:
    return True


def _waits(interval: Interval) -> bool:
    """Waits that are not meant."""
    return interval.kind is Kind.QUEUE and not interval.intended


def _works(interval: Interval) -> bool:
    return interval.kind in WORK


def _spans(r: TimedRequest, chosen: Chosen) -> list[Span]:
    return _within(r, filter(chosen, r.intervals))


def _within(r: TimedRequest, intervals: Iterable[Interval]) -> list[Span]:
    """As far as they lie in the request's span: a log is written after the deed, so ends may lie beyond."""
    return [(max(i.start_ns, r.start_ns), min(i.end_ns, r.end_ns)) for i in intervals]


def union_ns(spans: Iterable[Span]) -> int:
    """The time that any of the spans covers."""
    covered, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def _hops(interval: Interval) -> bool:
    return interval.kind is Kind.HOP


def _known(interval: Interval) -> bool:
    """Work and waits."""
    return not _hops(interval)


def covered_ns(requests: Iterable[TimedRequest]) -> int:
    """The time of requests in any interval."""
    return sum(union_ns(_spans(r, _any)) for r in requests)


def split_kind(interval: Interval) -> str:
    """Its word in SPLIT."""
    return INTENDED if interval.intended else interval.kind


def split_of(requests: Sequence[TimedRequest], total_ns: int) -> dict[str, float]:
    """Each kind's share that no kind before it in SPLIT covers."""
    shares, before = {}, 0
    for place, kind in enumerate(SPLIT, 1):
        first = SPLIT[:place]
        covered = sum(union_ns(_spans(r, lambda i, of=first: split_kind(i) in of)) for r in requests)  # type: ignore[misc]
        shares[str(kind)], before = (covered - before) / total_ns, covered
    return shares


def _exposed_ns(requests: Iterable[TimedRequest], chosen: Chosen, under: Chosen = _works) -> int:
    """Time in the chosen intervals that none of those `under` covers."""
    exposed = 0
    for r in requests:
        working = _spans(r, under)
        exposed += union_ns([*working, *_spans(r, chosen)]) - union_ns(working)
    return exposed


def queues_of(
    requests: Sequence[TimedRequest], total_ns: int, order: Sequence[str]
) -> tuple[StageQueue, ...]:
    """What waits and works in each stage, in this order."""
    return tuple(_queue(requests, total_ns, stage, position) for position, stage in enumerate(order))


def _queue(requests: Sequence[TimedRequest], total_ns: int, stage: str, position: int) -> StageQueue:
    worked_ns = sum(union_ns(_spans(r, lambda i: i.stage == stage and _works(i))) for r in requests)
    return StageQueue(
        stage=stage,
        share=_exposed_ns(requests, lambda i: i.stage == stage and _waits(i)) / total_ns,
        hop_share=_exposed_ns(requests, lambda i: i.to == stage and _hops(i), _known) / total_ns,
        work_share=worked_ns / total_ns,
        position=position,
    )
