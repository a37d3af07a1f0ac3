"""A slow second reading of stage events: no queues of pairs, no unions, no shared code.

Pairs by counting (the i-th start with the i-th end), coverage by cutting time at every boundary and asking of
each piece who covers it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Line = dict[str, Any]


class Stretch(NamedTuple):
    """One interval of one request, in ns."""

    request: str
    start: int
    end: int


def stretches(lines: Sequence[Line], stage: str, start: str, end: str) -> list[Stretch]:
    """The i-th start of a request in a stage with its i-th end."""
    made = []
    for request in {one["request_id"] for one in lines}:
        starts, ends = (
            sorted(
                one["timestamp_ns"]
                for one in lines
                if (one["request_id"], one["stage"], one["event_name"]) == (request, stage, name)
            )
            for name in (start, end)
        )
        made += [Stretch(request, a, b) for a, b in zip(starts, ends, strict=False)]
    return made


def spans(lines: Sequence[Line]) -> list[Stretch]:
    """From admission to answer, of requests that have both."""
    return stretches(lines, "coordinator", "request_admission", "terminal_response")


def covered(whole: Collection[Stretch], parts: Collection[Stretch], but_not: Collection[Stretch] = ()) -> int:
    """Time within the whole that parts cover and `but_not` does not, added up over requests."""
    total = 0
    for request, start, end in whole:
        own = [p for p in parts if p.request == request]
        other = [p for p in but_not if p.request == request]
        times = {start, end, *(t for part in (*own, *other) for t in part[1:])}
        for a, b in pairwise(sorted(t for t in times if start <= t <= end)):
            inside = any(p.start <= a and b <= p.end for p in own)
            outside = any(p.start <= a and b <= p.end for p in other)
            total += (b - a) * (inside and not outside)
    return total


def quantile_ms(parts: Collection[Stretch], share: float) -> float:
    """Linear between neighbours."""
    return float(np.quantile([p.end - p.start for p in parts], share)) / 1e6


def mean_ms(parts: Collection[Stretch]) -> float:
    return sum(p.end - p.start for p in parts) / len(parts) / 1e6
