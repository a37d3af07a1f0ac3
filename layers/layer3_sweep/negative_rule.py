"""The negative rule: when more requests in flight buy only waiting. Pure.

    utilisation does not rise with load, marginal throughput shrinks, p95 gets worse

A fixed cost of each step is spread over more requests, and that is all: the devices do not get more to do,
and what is added waits. Piling up concurrency is then no remedy (SGLang-Omni methodology, Layer 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from layers.layer3_sweep.elasticity import last_doubling, two
from layers.layer3_sweep.model import Elasticity, SweepPoint, Trend, Utilisation
from layers.layer3_sweep.points import Tail, at, tail
from layers.layer3_sweep.utilisation import DEVICE_FULL

WORSE = 0.10
"""p95 worse by more than this. perfkit's choice: repeats of one load differ by less."""


class Amortised(NamedTuple):
    """The last doubling, at which the rule holds, and its three signs in words."""

    before: SweepPoint
    last: SweepPoint
    tail: Tail
    because: str


def negative_rule(
    points: Sequence[SweepPoint], steps: Sequence[Elasticity], utilisation: Sequence[Utilisation]
) -> Amortised | None:
    """Whether the rule holds at the end of the curve; None where one of its three signs is not there, or was
    not measured. A utilisation that tells nothing is none, and one that is full already cannot rise."""
    doubling = last_doubling(points)
    busy = next((u for u in utilisation if u.trend is not Trend.USELESS), None)
    if doubling is None or busy is None or busy.trend is Trend.RISING or not _shrinks(steps):
        return None
    if busy.share is not None and busy.share >= DEVICE_FULL:
        return None
    before, last = doubling
    waits = tail(doubling)
    if waits is None or waits.values_ms[1] <= (1 + WORSE) * waits.values_ms[0]:
        return None
    said = (
        f"{busy.metric} does not rise ({busy.because}); elasticity goes from {two(steps[0].value)} to "
        f"{two(steps[-1].value)}; from {at(before):g} to {at(last):g} at a time {waits.text}"
    )
    return Amortised(before, last, waits, said)


def _shrinks(steps: Sequence[Elasticity]) -> bool:
    """Whether the last step buys less than the first one did, and less than load."""
    return len(steps) > 1 and steps[-1].value < min(steps[0].value, 1.0)
