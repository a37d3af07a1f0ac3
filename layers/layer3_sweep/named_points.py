"""Where a curve bends, by each definition that has a name. There is no one knee. Pure.

On one real sweep (8 H100, 1 to 128 at a time) the bend lies at 8, 10, 16, 32 or 64 by definition, and the
Kneedle algorithm moves it with the end of the sweep. So each point says by what it was found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from layers.layer3_sweep.elasticity import between, change_spread, elasticities, step_text
from layers.layer3_sweep.model import NamedPoint, SweepPoint, Timing
from layers.layer3_sweep.points import P99, at, quantile_ms, rate, residence_s

LINEAR_SHARE = 0.90
"""Of the throughput that the lowest load promises. perfkit's choice: a tenth lost is more than any spread."""
PLATEAU = 0.05
"""Elasticity below which twice the load buys at most 3.5 % of throughput. perfkit's choice: repeats of a
quiet server differ by about 2 % (sglang-omni#1232)."""
LINEAR_LIMIT, ASYMPTOTE, POWER = "linear_limit", "asymptote", "power_optimum"
PLATEAU_START, P99_INFLECTION, SLO_LIMIT = "plateau_start", "p99_inflection", "slo_limit"
SHOWN_NAMES = {
    LINEAR_LIMIT: "linear limit",
    ASYMPTOTE: "asymptote",
    POWER: "power optimum",
    PLATEAU_START: "plateau start",
    P99_INFLECTION: "p99 inflection",
    SLO_LIMIT: "SLO limit",
}
GIB = 2**30


class Slo(NamedTuple):
    """A promise on one quantile of one time: p99 of TTFT at most so many milliseconds."""

    timing: Timing
    quantile: float
    limit_ms: float

    def __str__(self) -> str:
        return f"{self.timing} p{100 * self.quantile:g} <= {self.limit_ms:g} ms"


def named_points(points: Sequence[SweepPoint], slos: Sequence[Slo] = ()) -> tuple[NamedPoint, ...]:
    """All that can be told of the points that stand, in the order of load."""
    if len(points) < 2:
        return tuple(_slo_limits(points, slos))
    found = (_linear_limit(points), _asymptote(points), _power_optimum(points))
    bends = (_plateau_start(points), p99_inflection(points))
    return tuple(p for p in (*found, *bends, *_slo_limits(points, slos)) if p is not None)


def find(named: Sequence[NamedPoint], name: str) -> NamedPoint | None:
    """The point of a name; None where the curve has none."""
    return next((point for point in named if point.name == name), None)


def _linear_limit(points: Sequence[SweepPoint]) -> NamedPoint | None:
    """The highest load up to which throughput goes with load."""
    first = points[0]
    kept = list(itertools.takewhile(lambda p: _efficiency(p, first) >= LINEAR_SHARE, points))
    if not kept:
        return None
    beyond = points[len(kept)] if len(kept) < len(points) else None
    after = f"; {_efficiency(beyond, first):.2f} at {at(beyond):g}" if beyond else ", the highest load"
    share = _efficiency(kept[-1], first)
    one = "X(1)" if at(first) == 1 else f"X({at(first):g}) / {at(first):g}"
    what = f"X(N) / (N {one})" if first.load.concurrency is not None else "the share of arrivals served"
    said = f"{what} is {share:.2f} there{after}"
    return NamedPoint(LINEAR_LIMIT, at(kept[-1]), said)


def _efficiency(point: SweepPoint, first: SweepPoint) -> float:
    """Over what the lowest load promises; of an open loop over its arrivals, which promise themselves."""
    promised = rate(first) / at(first) if first.load.concurrency is not None else 1.0
    return rate(point) / at(point) / promised


def _asymptote(points: Sequence[SweepPoint]) -> NamedPoint | None:
    """Where the line through the lowest load meets the roof: Xmax R1 (Denning and Buzen 1978). A server that
    batches passes it: its demand a request falls with load. Of an open loop there is none."""
    first, most = residence_s(points[0]), max(map(rate, points))
    if first is None or points[0].load.concurrency is None:
        return None
    said = f"Xmax R1 = {most:.4g}/s x {first:.4g} s, R1 at {at(points[0]):g}"
    return NamedPoint(ASYMPTOTE, most * first, said)


def _power_optimum(points: Sequence[SweepPoint]) -> NamedPoint | None:
    """Where throughput over latency is largest (Kleinrock 1979)."""
    powers = [(rate(p) / r, p) for p in points if (r := residence_s(p))]
    if len(powers) < 2:
        return None
    power, best = max(powers, key=lambda pair: pair[0])
    return NamedPoint(POWER, at(best), f"throughput / latency is largest: {power:.3g}/s²")


def _plateau_start(points: Sequence[SweepPoint]) -> NamedPoint | None:
    """The lowest load from which on more load buys nothing: over the whole rest the elasticity is below
    PLATEAU, and no step of it is above it beyond its interval."""
    spread, steps = change_spread(points), elasticities(points)
    for index, point in enumerate(points[:-1]):
        rest = between(point, points[-1], spread)
        rises = any((s.value if s.low is None else s.low) >= PLATEAU for s in steps[index:])
        if rest.value < PLATEAU and not rises:
            said = f"elasticity {step_text(rest)}; {rate(point):.4g} req/s"
            return NamedPoint(PLATEAU_START, at(point), said)
    return None


def p99_inflection(points: Sequence[SweepPoint]) -> NamedPoint | None:
    """Where p99 bends up most: the largest rise of its slope over ln N, with the memory peak there.

    By end to end where it has a p99 at three loads, else by the first output.
    """
    for timing in (Timing.E2E, Timing.TTFT, Timing.FIRST_AUDIO):
        told = [(p, p99) for p in points if (p99 := quantile_ms(p, timing, P99))]
        if len(told) < 3:
            continue
        bends = list(_bends(told))
        bend, index = max(bends)
        if bend > 0:
            (point, here), (following, there) = told[index], told[index + 1]
            said = f"{timing} p99 {here:,.0f} ms here, {there:,.0f} ms at {at(following):g}"
            return NamedPoint(P99_INFLECTION, at(point), said + _memory_text(point))
    return None


def _bends(told: Sequence[tuple[SweepPoint, float]]) -> Iterator[tuple[float, int]]:
    """By how much the slope of ln p99 over ln N rises at each inner point, and its index."""
    slopes = [
        math.log(b_ms / a_ms) / math.log(at(b) / at(a)) for (a, a_ms), (b, b_ms) in itertools.pairwise(told)
    ]
    for index, (before, after) in enumerate(itertools.pairwise(slopes), 1):
        yield after - before, index


def _memory_text(point: SweepPoint) -> str:
    peaks = [d.memory_peak_bytes for swept in point.passes for d in swept.devices if d.memory_peak_bytes]
    return f"; memory peak {max(peaks) / GIB:.1f} GiB" if peaks else "; memory was not sampled"


def _slo_limits(points: Sequence[SweepPoint], slos: Sequence[Slo]) -> Iterator[NamedPoint]:
    """The highest load up to which each promise holds at every load."""
    for slo in slos:
        told = [(p, ms) for p in points if (ms := quantile_ms(p, slo.timing, slo.quantile)) is not None]
        broken = next((index for index, (_, ms) in enumerate(told) if ms > slo.limit_ms), len(told))
        if broken:
            point, value_ms = told[broken - 1]
            yield NamedPoint(SLO_LIMIT, at(point), f"{slo}: {value_ms:,.1f} ms there")
