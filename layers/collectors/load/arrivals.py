"""When requests are meant to start: the arrivals of an open loop, the ramp of a closed one. Pure.

Arrivals stand on an absolute schedule: a late one does not push those behind it (relative sleeps drift, and
offer less than was asked). Several processes share a Poisson stream by a stream of its share each (their sum
is the whole one), and a constant one by taking turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from layers.collectors.load.plan import Arrivals

NS_PER_S = 1_000_000_000


def arrivals(
    kind: Arrivals, rate_per_s: float, start_ns: int, seed: int, processes: int = 1, index: int = 0
) -> Iterator[int]:
    """The endless arrivals of process `index`, in order."""
    if kind is Arrivals.CONSTANT:
        return _constant(rate_per_s, start_ns, processes, index)
    return _poisson(rate_per_s / processes, start_ns, Random(f"{seed}/{index}"))


def _constant(rate_per_s: float, start_ns: int, processes: int, index: int) -> Iterator[int]:
    number = index
    while True:
        yield start_ns + round(number * NS_PER_S / rate_per_s)
        number += processes


def _poisson(rate_per_s: float, start_ns: int, random: Random) -> Iterator[int]:
    at_s = 0.0
    while True:
        at_s += random.expovariate(rate_per_s)
        yield start_ns + round(at_s * NS_PER_S)


def ramp(slots: int, ramp_s: float, start_ns: int) -> list[int]:
    """When each slot of a closed loop starts: evenly over the ramp."""
    return [start_ns + round(slot * ramp_s * NS_PER_S / slots) for slot in range(slots)]
