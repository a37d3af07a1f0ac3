"""What a server's own metrics come to over a window: read back from the sampler's recording, and reduced.

Gauges are means of the samples inside the window. Counters and the sums of histograms are differences between
the samples nearest to its ends, each at most a period away. A counter that falls was reset: the server, or a
part of it, began anew, and what counters say of this window is left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from layers.collectors.server_adapters.adapter import MetricsSample, ServerState
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.evidence.record_log import read_records
from parsers.loss import Loss

MS_PER_S = 1000.0


@dataclass(frozen=True, slots=True)
class MetricsLog:
    """A recording: its pages, in the order of their time, and how many did not come, with the last reason."""

    samples: tuple[MetricsSample, ...]
    failures: int
    problem: str
    losses: tuple[Loss, ...]

    @property
    def lacking(self) -> str:
        """What did not come, in words; empty where all came."""
        asked = self.failures + len(self.samples)
        told = f"{self.failures} of {asked} pages of the server's metrics did not come: {self.problem}"
        return told if self.failures else ""


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """What a stage worked on over a window: items of a batch and milliseconds of it in the mean, over `n`
    batches."""

    size: float
    ms: float
    n: int


@dataclass(frozen=True, slots=True)
class ServerMeans:
    """Means over a window, as `ServerState`; `preemptions` is how many there were, `prefix_hit_share` hits
    over look-ups. `stage_ms`: mean time in each stage; `batches`: what it worked on at a time. `n` counts
    pages. `reset`: a counter fell."""

    running: float | None
    waiting: float | None
    kv_share: float | None
    preemptions: float | None
    prefix_hit_share: float | None
    stage_ms: dict[str, float]
    n: int
    reset: bool
    batches: dict[str, BatchMeans] = field(default_factory=dict)


def read_metrics(path: Path) -> MetricsLog:
    """A recording of `server-metrics`; UnreadableInput where there is none."""
    losses: list[Loss] = []
    readings = [record for _, record in read_records(path, losses) if record["kind"] == "r"]
    why = [reason for record in readings for reason in record.get("missing", {}).values()]
    samples = [
        MetricsSample(record["mono_ns"], record["wall_ns"], record["call_ns"], record["values"])
        for record in readings
        if record["values"]
    ]
    ordered = tuple(sorted(samples, key=lambda sample: sample.monotonic_ns))
    return MetricsLog(ordered, len(readings) - len(samples), why[-1] if why else "", tuple(losses))


def server_means(
    adapter: GenericAdapter, samples: Sequence[MetricsSample], start_ns: int, end_ns: int
) -> ServerMeans | None:
    """What the server said of itself in a window (monotonic ns); None without a page inside it."""
    inside = [adapter.state(sample) for sample in samples if start_ns <= sample.monotonic_ns <= end_ns]
    if not inside:
        return None
    around = samples[nearest(samples, start_ns) : nearest(samples, end_ns) + 1]
    states = [adapter.state(sample) for sample in around]
    reset = any(_fell(counted) for counted in _counters(states)) or _sums_fell(adapter, around)
    counts = [None if reset else _grown(counted) for counted in _counters(states)]
    preemptions, hits, queries = counts
    return ServerMeans(
        running=_mean(inside, lambda state: state.running),
        waiting=_mean(inside, lambda state: state.waiting),
        kv_share=_mean(inside, lambda state: state.kv_share),
        preemptions=preemptions,
        prefix_hit_share=hits / queries if hits is not None and queries else None,
        stage_ms={} if reset else stage_ms(adapter, around),
        n=len(inside),
        reset=reset,
        batches={} if reset else batch_means(adapter, around),
    )


def nearest(samples: Sequence[MetricsSample], at_ns: int) -> int:
    """The place of the sample that is nearest to a time."""
    place = bisect_left(samples, at_ns, key=lambda sample: sample.monotonic_ns)
    near = [one for one in (place - 1, place) if 0 <= one < len(samples)]
    return min(near, key=lambda one: abs(samples[one].monotonic_ns - at_ns))


def stage_ms(adapter: GenericAdapter, samples: Sequence[MetricsSample]) -> dict[str, float]:
    """Mean time of what passed each stage between the first and the last page; none of a stage that nothing
    passed."""
    found: dict[str, float] = {}
    for stage in adapter.stages:
        before, after = stage.sums(samples[0].values), stage.sums(samples[-1].values)
        for name, (sum_s, count) in after.items():
            began_s, began = before.get(name, (0.0, 0.0))
            if count > began:
                found[name] = MS_PER_S * (sum_s - began_s) / (count - began)
    return found


def batch_means(adapter: GenericAdapter, samples: Sequence[MetricsSample]) -> dict[str, BatchMeans]:
    """Batches of each stage between the first and the last page; none of a stage without one."""
    if adapter.work is None:
        return {}
    before, after = adapter.work.totals(samples[0].values), adapter.work.totals(samples[-1].values)
    found: dict[str, BatchMeans] = {}
    for stage, now in after.items():
        began = before.get(stage, (0.0, 0.0, 0.0))
        seconds, batches, items = (a - b for a, b in zip(now, began, strict=True))
        if batches > 0 and items > 0 and seconds > 0:
            found[stage] = BatchMeans(items / batches, MS_PER_S * seconds / batches, round(batches))
    return found


def _sums_fell(adapter: GenericAdapter, samples: Sequence[MetricsSample]) -> bool:
    pages = [
        {name: sums for stage in adapter.stages for name, sums in stage.sums(sample.values).items()}
        for sample in samples
    ]
    return any(_fell([page[name][1] for page in pages if name in page]) for name in pages[-1])


def _counters(states: Sequence[ServerState]) -> list[list[float]]:
    """Preemptions, hits and look-ups, where the server says them."""
    pick: list[Callable[[ServerState], float | None]] = [
        lambda state: state.preemptions,
        lambda state: state.prefix_hits,
        lambda state: state.prefix_queries,
    ]
    return [[value for state in states if (value := one(state)) is not None] for one in pick]


def _grown(counted: Sequence[float]) -> float | None:
    return counted[-1] - counted[0] if len(counted) > 1 else None


def _fell(counted: Sequence[float]) -> bool:
    return any(after < before for before, after in pairwise(counted))


def _mean(states: Sequence[ServerState], pick: Callable[[ServerState], float | None]) -> float | None:
    values = [value for state in states if (value := pick(state)) is not None]
    return sum(values) / len(values) if values else None
