"""The distribution of a run's latency in few points: its empirical distribution function, thinned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layers.collectors.load.records import RequestRecord
from layers.layer3_sweep.model import Timing
from parsers.load_results import ReportedRequest

MOST_POINTS = 100
"""One a percent: finer than a figure shows."""
NS_PER_MS, MS_PER_S = 1e6, 1e3

Points = tuple[tuple[float, float], ...]
"""(share of requests that took no longer, milliseconds), in order."""


def ecdf(values_ms: Sequence[float], most: int = MOST_POINTS) -> Points:
    """Every value with its share where there are few, else those at every percent; nothing for no value."""
    ordered, n = sorted(values_ms), len(values_ms)
    places = range(1, n + 1) if n <= most else sorted({-(-n * step // most) for step in range(1, most + 1)})
    return tuple((place / n, ordered[place - 1]) for place in places)


def of_records(requests: Iterable[RequestRecord]) -> Mapping[str, Points]:
    """Of the served requests of a window: end to end, and the first output where it is not the end."""
    served = [r for r in requests if r.ok]
    first = Timing.FIRST_AUDIO if any(r.audio for r in served) else Timing.TTFT
    times_ns = {Timing.E2E: [r.latency_ns for r in served]}
    if any(len(r.event_ns) > 1 for r in served):
        times_ns[first] = [r.first_event_ns for r in served]
    return _told({timing: [ns / NS_PER_MS for ns in times if ns] for timing, times in times_ns.items()})


def of_reported(requests: Iterable[ReportedRequest]) -> Mapping[str, Points]:
    """Of requests as another tool reported them."""
    served = [r for r in requests if r.ok]
    times_s = {Timing.E2E: [r.latency_s for r in served], Timing.TTFT: [r.ttft_s for r in served]}
    return _told({timing: [s * MS_PER_S for s in times if s] for timing, times in times_s.items()})


def _told(times_ms: Mapping[Timing, Sequence[float]]) -> dict[str, Points]:
    return {str(timing): ecdf(values) for timing, values in times_ms.items() if values}
