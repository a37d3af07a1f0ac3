"""What each synchronise, copy out and host computation inside a step costs, and, apart from it, prevents.

its own cost        the share of its thread's ticks (Layer 2); and, where a switch removes it, the A/B of
                    that switch alone, with nothing on that it could have blocked
what it prevents    counters that stand still beside it, and the A/B of the same switch with everything on
if it went          by both: at most 1 / (1 - share) of its thread, and what was measured where it did go
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from layers.layer4_ab.model import Count
from layers.layer4_ab.numbers import change, interval
from layers.layer4_ab.study.analyse import Found, StepFound
from layers.layer4_ab.study.evidence import Share
from layers.layer4_ab.study.steps import Way, configurations
from layers.layer4_ab.study.switches import GRAPH_REPLAYS, HOST_POINTS, LOOKAHEAD_STEPS, HostPoint

NOT_MEASURED = "not measured: no stacks of a configuration in which it is there"
MOST = 0.5
"""Of a share that bounds what its thread could win. A thread that waits for more than that waits for work of
the device, which would be waited for elsewhere. perfkit's choice."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """One host point with what was found of it. `where_seen`: the configuration of the share; `prevented`:
    counters beside it and without it; `gains`: in words, what would be won if it went."""

    point: HostPoint
    where_seen: str
    share: Share | None
    own_cost: str
    prevented: tuple[Count, ...]
    prevents: str
    gain: str


def blockings(found: Found) -> tuple[Blocking, ...]:
    """Every host point that is in a step under one of the study's loads."""
    loads = {load.name for load in found.study.loads}
    return tuple(_blocking(found, point) for point in HOST_POINTS if point.load in loads)


def section_of(one: Blocking) -> dict[str, Any]:
    """JSON-ready."""
    share = one.share
    told: Mapping[str, Any] | None = None
    if share is not None:
        told = {"value": share.value, "low": share.low, "high": share.high, "n": share.n}
    return {
        "name": one.point.name,
        "kind": one.point.kind,
        "where": one.point.where,
        "load": one.point.load,
        "thread": one.point.thread,
        "seen_in": one.where_seen,
        "share": told,
        "own_cost": one.own_cost,
        "counters": [{"name": c.name, "with_it": c.a, "without_it": c.b} for c in one.prevented],
        "prevents": one.prevents,
        "if_it_went": one.gain,
    }


def _blocking(found: Found, point: HostPoint) -> Blocking:
    name, share = _seen(found, point)
    alone = found.of(point.goes_with, Way.LADDER, Way.BOTH) if point.goes_with else None
    left = found.of(point.goes_with, Way.LEFT_OUT, Way.BOTH) if point.goes_with else None
    prevented = left.analysis.unblocked if left is not None and left.analysis is not None else ()
    own = [f"{share.text} of thread {point.thread}, {name}" if share is not None else NOT_MEASURED]
    if alone is not None:
        own.append(f"gone by itself, with nothing on that it could block: {_measured(alone)}")
    return Blocking(
        point=point,
        where_seen=name,
        share=share,
        own_cost="; ".join(own),
        prevented=prevented,
        prevents=_prevents(found, point, prevented),
        gain="; ".join(_gains(found, point, share, alone, left)),
    )


def _seen(found: Found, point: HostPoint) -> tuple[str, Share | None]:
    """In the configuration that is nearest to everything on, and has it."""
    fits = [
        one
        for one in configurations(found.study)
        if one.load == point.load and point.present.items() <= one.settings.items()
    ]
    switched_on = {switch.name: switch.on for switch in found.study.switches}
    nearest = sorted(fits, key=lambda c: -sum(switched_on[k] == v for k, v in c.settings.items()))
    for one in nearest:
        evidence = found.evidence.get(one.key)
        share = evidence.share_of(point.thread, point.place) if evidence is not None else None
        if share is not None:
            return one.name, share
    return "", None


def _prevents(found: Found, point: HostPoint, prevented: tuple[Count, ...]) -> str:
    if point.prevents:
        told = [f"{one.name}: {one.a:,.6g} with it, {one.b:,.6g} without" for one in prevented]
        return "; ".join(told) or "counters were not sampled"
    whole = found.whole.analysis
    counters = whole.b.counters if whole is not None else {}
    beside = [f"{n} {counters[n]:,.6g}" for n in (GRAPH_REPLAYS, LOOKAHEAD_STEPS) if counters.get(n)]
    if not beside:
        return "no graph and no lookahead was seen to run beside it"
    return f"neither graphs nor lookahead, which ran beside it ({', '.join(beside)} with everything on)"


def _gains(
    found: Found, point: HostPoint, share: Share | None, alone: StepFound | None, left: StepFound | None
) -> Iterator[str]:
    if share is not None:
        yield _bound(point, share)
    if left is not None:
        yield f"measured, with everything on that it blocks: {_measured(left)}"
    if (beyond := _beyond(alone, left)) is not None:
        yield f"what it prevents is worth {change(beyond)} beyond its own cost (ratio of both, no interval)"
    if point.hidden_by and not point.goes_with:
        hidden = found.of(point.hidden_by, Way.LEFT_OUT, Way.BOTH)
        if hidden is not None:
            yield f"hidden behind other work by {point.hidden_by}: {_measured(hidden)}"


def _bound(point: HostPoint, share: Share) -> str:
    if share.high >= MOST:
        return (
            f"thread {point.thread} may be there for most of its time, also for the device: no bound of use"
        )
    return f"at most {change(-math.log1p(-share.high))} of what thread {point.thread} does"


def _measured(one: StepFound) -> str:
    """The effect of a step, or why there is none to tell."""
    if one.result is None or one.analysis is None or one.analysis.primary is None:
        return "not measured"
    verdict = one.result.verdict
    if not one.valid:
        return f"invalid ({verdict.because})"
    doubt = "?" if verdict.directional else ""
    return f"{interval(one.analysis.primary)}, {verdict.word}{doubt}"


def _beyond(alone: StepFound | None, left: StepFound | None) -> float | None:
    """The log-ratio of both effects; None where one is not valid."""
    both = [one for one in (alone, left) if one is not None and one.valid and one.analysis is not None]
    primaries = [one.analysis.primary for one in both if one.analysis is not None]
    if len(primaries) < 2 or primaries[0] is None or primaries[1] is None or both[0] is both[1]:
        return None
    return primaries[1].gain - primaries[0].gain
