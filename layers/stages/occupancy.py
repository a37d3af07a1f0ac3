"""How many requests a stage holds: integrated over time, and by Little's law. Pure.

Over a whole run that begins and ends empty the two are the same by arithmetic. Over the middle half they
agree only where the run is steady: what came in then is like what was there (Little 1961).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from layers.stages.model import Kind, Outcome, Steadiness, TimedRequest
from layers.stages.requests import TimedRun

EDGE_SHARE = 0.25
"""Left out at either end: ramp and drain."""
LEAST_REQUESTS = 40
"""Half of them come in the middle half of a steady run, and fewer than 20 say nothing of a rate."""
NS_PER_MS, NS_PER_S = 1e6, 1e9
Span = tuple[int, int]


def mean_in_flight(requests: Iterable[TimedRequest], start_ns: int, end_ns: int) -> float:
    """Requests in the service at a time, over the window; cut ones count as far as they were seen."""
    inside = [r for r in requests if r.outcome is not Outcome.SHED]
    return sum(r.length_ns for r in inside) / max(1, end_ns - start_ns)


def steadiness(run: TimedRun) -> tuple[Steadiness, ...]:
    """The whole first (stage ""), then each stage that enough requests came to."""
    edge_ns = round((run.end_ns - run.start_ns) * EDGE_SHARE)
    window = run.start_ns + edge_ns, run.end_ns - edge_ns
    stages: dict[str, list[Span]] = defaultdict(list)
    for r in run.requests:
        if r.outcome is Outcome.SHED:
            continue
        stages[""].append((r.start_ns, r.end_ns))
        for stage in {i.stage for i in r.intervals if i.kind is not Kind.HOP}:
            own = [i for i in r.intervals if i.stage == stage and i.kind is not Kind.HOP]
            stages[stage].append((min(i.start_ns for i in own), max(i.end_ns for i in own)))
    found = (_of(stage, spans, window) for stage, spans in stages.items())
    return tuple(one for one in found if one is not None)


def _of(stage: str, spans: Sequence[Span], window: Span) -> Steadiness | None:
    begin, end = window
    came = [(s, e) for s, e in spans if begin <= s < end]
    held_ns = sum(max(0, min(e, end) - max(s, begin)) for s, e in spans)
    if len(spans) < LEAST_REQUESTS or held_ns == 0:
        return None
    length_ns = end - begin
    return Steadiness(
        stage=stage,
        arrivals=len(came),
        arrivals_per_s=len(came) / (length_ns / NS_PER_S),
        time_ms=sum(e - s for s, e in came) / max(1, len(came)) / NS_PER_MS,
        held=held_ns / length_ns,
    )
