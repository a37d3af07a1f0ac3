"""What kind of curve it is: one word, and what it rests on. Pure.

The word follows a table of patterns: how throughput answers to twice the load, how busy the devices are by a
metric that can tell, and where requests wait. It looks at the last doubling, since a class is about the end
of the curve. What was not measured decides nothing: a plateau without evidence of its cause is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from layers.evidence.wording import pct
from layers.layer3_sweep.elasticity import between, change_spread, step_text
from layers.layer3_sweep.model import (
    CurveClass,
    Elasticity,
    StageSlope,
    SweepPoint,
    Trend,
    Usl,
    Utilisation,
)
from layers.layer3_sweep.plateau_signs import host_thread, memory, waits
from layers.layer3_sweep.points import at, counts_of, failed_share, rate, residence_s
from layers.layer3_sweep.utilisation import DEVICE_FULL, telling
from parsers.series_model import Metric

STILL_RISING = 0.30
"""Elasticity of the last doubling from which on the curve still rises: twice the load buys 23 % or more."""
FLAT = 0.10
"""Below it twice the load buys less than 7 %, which repeats hardly tell from nothing."""
FELL = 0.10
"""Throughput below its peak by more than this is retrograde; repeats of one load differ by less."""
SERVED = 0.95
"""Of the arrivals of an open loop: below it the queue grows for as long as the load lasts."""


class Called(NamedTuple):
    """A class and the numbers that say so."""

    word: CurveClass
    because: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the class of one curve is called by: points that stand within the budget of failures in the order
    of load, those beyond it, and loads at which the client was the limit."""

    points: Sequence[SweepPoint]
    overloaded: Sequence[SweepPoint]
    client_limited: Sequence[float]
    step: Elasticity | None
    usl: Usl | None
    utilisation: Sequence[Utilisation]
    stages: Sequence[StageSlope]


def classify(seen: Seen) -> Called:
    """The class of one curve."""
    if seen.step is None:
        return _too_little(seen)
    if seen.points[-1].load.rate_per_s is not None:
        return _beyond(seen) or _open_loop(seen, seen.points[-1].load.rate_per_s)
    if _too_spread(seen.step):
        said = f"repeats differ too much to tell a rise from a plateau: elasticity {step_text(seen.step)}"
        return _beyond(seen) or Called(CurveClass.UNDECIDED, said)
    if seen.step.value >= FLAT:
        return _beyond(seen) or _rising(seen, seen.step)
    return _fallen(seen) or _device(seen) or _thread(seen) or _limit(seen) or _unexplained(seen)


def _too_spread(step: Elasticity) -> bool:
    """Whether the interval holds both a plateau and a curve that still rises."""
    return step.low is not None and step.high is not None and step.low < FLAT and step.high >= STILL_RISING


def _too_little(seen: Seen) -> Called:
    reason = "fewer than two loads stand"
    return _beyond(seen) or Called(CurveClass.UNDECIDED, reason)


def _beyond(seen: Seen) -> Called | None:
    """Why the curve ends before it bends, where loads above it do not count."""
    highest = at(seen.points[-1]) if seen.points else 0.0
    if late := [load for load in seen.client_limited if load > highest]:
        said = f"the client was the limit at {_loads(late)}; what the server does there is not known"
        return Called(CurveClass.CLIENT_LIMITED, said)
    if over := [p for p in seen.overloaded if at(p) > highest]:
        failed = ", ".join(f"{pct(failed_share(p))} failed at {at(p):g}" for p in over)
        return Called(CurveClass.OVERLOADED, f"{failed}, before throughput stops rising")
    return None


def _rising(seen: Seen, step: Elasticity) -> Called:
    last = seen.points[-1]
    said = f"throughput still rises: {rate(last):.4g} req/s at {at(last):g}, elasticity {step_text(step)}"
    if step.value >= STILL_RISING:
        return Called(CurveClass.NOT_SATURATED, said)
    return Called(CurveClass.UNDECIDED, f"{said}: it bends, and no plateau is reached")


def _fallen(seen: Seen) -> Called | None:
    """Host-side: throughput no longer rises and the devices get less to do. Retrograde: it falls."""
    busy = telling(seen.utilisation)
    if busy is not None and busy.trend is Trend.FALLING and not any(_waits(seen)):
        said = f"{_plateau(seen)} and {busy.metric} falls ({busy.because})"
        return Called(CurveClass.HOST_SIDE, f"{said}: the devices get less to do as load grows")
    peak, last = max(seen.points, key=rate), seen.points[-1]
    lost = 1 - rate(last) / rate(peak)
    if (lost > FELL and _clear(seen.points, peak)) or (lost > 0 and _peaks_before(seen.usl, at(last))):
        said = f"{rate(peak):.4g} req/s at {at(peak):g}, {rate(last):.4g} at {at(last):g} (-{pct(lost)})"
        return Called(CurveClass.RETROGRADE, said)
    return None


def _clear(points: Sequence[SweepPoint], peak: SweepPoint) -> bool:
    """Whether a fall is more than the spread of repeats; without repeats the fall is all there is."""
    fall = between(peak, points[-1], change_spread(points))
    return fall.high is None or fall.high < 0


def _peaks_before(usl: Usl | None, load: float) -> bool:
    """Whether a fit that passed its test has its peak, clear of none, below a load."""
    return usl is not None and usl.fits and usl.peak is not None and usl.peak < load


def _device(seen: Seen) -> Called | None:
    busy = telling(seen.utilisation)
    if busy is None or busy.share is None or busy.share < DEVICE_FULL:
        return None
    doubt = " (any resident kernel counts: confirm by SM active)"
    said = f"{_plateau(seen)} with the devices at {pct(busy.share)} by {busy.metric}"
    said += doubt if busy.metric == Metric.NVML_UTIL_PCT else ""
    return Called(CurveClass.PLATEAU_DEVICE, said)


def _thread(seen: Seen) -> Called | None:
    """Host-side by the thread that has no time left, while the devices have some."""
    told = host_thread(seen.points)
    if not told or not any(_not_full(seen)):
        return None
    return Called(CurveClass.HOST_SIDE, f"{_plateau(seen)} while {told}; {'; '.join(_not_full(seen))}")


def _limit(seen: Seen) -> Called | None:
    evidence = [*_waits(seen), *memory(seen.points[-1]), *_not_full(seen)]
    if not evidence:
        return None
    return Called(CurveClass.PLATEAU_LIMIT, f"{_plateau(seen)} while {'; '.join(evidence)}")


def _waits(seen: Seen) -> Iterator[str]:
    return waits(seen.points, seen.overloaded, seen.stages)


def _open_loop(seen: Seen, offered: float) -> Called:
    """An open loop is served or it is not: arrivals come whatever the server does. Its pass holds the drain,
    which takes about as long as a request of the lowest load."""
    last, drain_s = seen.points[-1], residence_s(seen.points[0]) or 0.0
    asked = counts_of(last).asked / len(last.passes)
    share = rate(last) * (1 / offered + (drain_s / asked if asked else 0.0))
    said = f"{rate(last):.4g} of {offered:g} arrivals a second are served"
    if share >= SERVED:
        return Called(CurveClass.NOT_SATURATED, said)
    signs = "; ".join(["", *_waits(seen), *memory(last)])
    return Called(CurveClass.OVERLOADED, f"{said}, and the rest piles up{signs}")


def _unexplained(seen: Seen) -> Called:
    said = f"{_plateau(seen)}; what holds it was not measured: {_what_lacks(seen)}"
    return Called(CurveClass.UNDECIDED, said)


def _not_full(seen: Seen) -> Iterator[str]:
    busy = telling(seen.utilisation)
    if busy is not None and busy.share is not None and busy.share < DEVICE_FULL:
        yield f"the devices are at {pct(busy.share)} by {busy.metric}"


def _plateau(seen: Seen) -> str:
    assert seen.step is not None
    last = seen.points[-1]
    numbers = f"{rate(last):.4g} req/s at {at(last):g}, elasticity {step_text(seen.step)}"
    return f"throughput no longer rises ({numbers})"


def _what_lacks(seen: Seen) -> str:
    useless = [u.metric for u in seen.utilisation if u.trend is Trend.USELESS]
    of_devices = f"{', '.join(useless)} tells nothing" if useless else "no utilisation of the devices"
    return f"{of_devices}, and no sign of where requests wait"


def _loads(loads: Sequence[float]) -> str:
    return ", ".join(f"{load:g}" for load in sorted(set(loads)))
