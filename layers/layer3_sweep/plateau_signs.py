"""Signs of what holds a curve at its plateau: where requests wait, memory, a thread of the host. Pure.

Each is a sentence with its numbers, or nothing where it is not there or was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.wording import pct
from layers.layer3_sweep.elasticity import last_doubling
from layers.layer3_sweep.model import StageSlope, SweepPoint, Timing
from layers.layer3_sweep.points import MEDIAN, at, counts_of, mean_over, quantile_ms, residence_s
from layers.layer3_sweep.stage_slopes import bottleneck

QUEUE_SHARE = 0.5
"""Of the added time: when more of it lies before the first output than after, requests wait to be let in."""
SAME = 0.10
"""Two values that differ by less are called the same."""
KV_FULL = 0.95
"""Share of the KV cache in use from which on admission waits for memory; vLLM preempts near 1."""
THREAD_FULL = 0.90
"""Of one core, the busiest thread of the server: it has hardly a moment left."""


def waits(
    points: Sequence[SweepPoint], overloaded: Sequence[SweepPoint], stages: Sequence[StageSlope]
) -> Iterator[str]:
    """Signs that requests wait to be let in, each with its numbers."""
    if (doubling := last_doubling(points)) is None:
        return
    before, last = doubling
    yield from _server_queue(before, last)
    yield from _first_output(before, last)
    yield from _sheds(points, overloaded)
    stage = bottleneck(stages)
    if stage is not None and stage.waits:
        yield (
            f"requests wait in {stage.stage}: it holds {stage.held_at_last:.1f} of {at(last):g} and takes "
            f"{pct(min(stage.slope, 1.0))} of each further one"
        )


def _server_queue(before: SweepPoint, last: SweepPoint) -> Iterator[str]:
    waiting = mean_over(last, lambda s: s.server.waiting if s.server else None)
    running = [mean_over(p, lambda s: s.server.running if s.server else None) for p in (before, last)]
    if waiting is None or waiting < 1 or running[0] is None or running[1] is None:
        return
    if running[1] <= (1 + SAME) * running[0]:
        yield (
            f"the server runs {running[0]:.1f} at {at(before):g} and {running[1]:.1f} at {at(last):g}, "
            f"where {waiting:.1f} wait"
        )


def _first_output(before: SweepPoint, last: SweepPoint) -> Iterator[str]:
    """The added time lies before the first output, and tokens come as fast as before: the batch is full."""
    first = [quantile_ms(p, Timing.TTFT, MEDIAN) for p in (before, last)]
    token = [quantile_ms(p, Timing.TPOT, MEDIAN) for p in (before, last)]
    whole = [residence_s(p) for p in (before, last)]
    if None in first or None in token or None in whole:
        return
    (first_a, first_b), (token_a, token_b), (whole_a, whole_b) = _pair(first), _pair(token), _pair(whole)
    added_ms = 1000 * (whole_b - whole_a)
    if added_ms > 0 and first_b - first_a >= QUEUE_SHARE * added_ms and token_b <= (1 + SAME) * token_a:
        yield (
            f"TTFT p50 grows from {first_a:,.0f} to {first_b:,.0f} ms and TPOT p50 stays at {token_a:.1f} to "
            f"{token_b:.1f} ms: what is added waits before its first step, and the batch is no larger"
        )


def _pair(values: Sequence[float | None]) -> tuple[float, float]:
    a, b = values
    assert a is not None and b is not None
    return a, b


def _sheds(points: Sequence[SweepPoint], overloaded: Sequence[SweepPoint]) -> Iterator[str]:
    """Sheds that begin with the plateau: the server counts who is in and refuses the rest."""
    shedding = [p for p in (*points, *overloaded) if counts_of(p).shed]
    if not shedding or counts_of(points[0]).shed:
        return
    first = shedding[0]
    counts = counts_of(first)
    yield f"the server refuses {counts.shed:,} of {counts.asked:,} requests at {at(first):g}, and none below"


def memory(last: SweepPoint) -> Iterator[str]:
    """Signs that the last load waits for memory."""
    kv_share = mean_over(last, lambda s: s.server.kv_share if s.server else None)
    preemptions = mean_over(last, lambda s: s.server.preemptions if s.server else None)
    if kv_share is not None and kv_share >= KV_FULL:
        yield f"the KV cache is full ({pct(kv_share)})"
    if preemptions:
        yield f"{preemptions:,.0f} requests were preempted a repeat"


def host_thread(points: Sequence[SweepPoint]) -> str:
    """A thread of the server that has no time left at the last load; one that is full at the lowest load too
    merely spins, and says nothing."""
    ends = points[0], points[-1]
    first, last = (mean_over(p, lambda s: s.host.busiest_thread if s.host else None) for p in ends)
    if first is None or last is None or last < THREAD_FULL or first >= THREAD_FULL:
        return ""
    goes = f"from {first:.2f} of a core at {at(ends[0]):g} to {last:.2f} at {at(ends[1]):g}"
    return f"the busiest thread of the server goes {goes}"
