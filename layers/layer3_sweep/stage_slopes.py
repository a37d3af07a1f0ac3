"""Which stage holds the requests that are more in flight: the slope of each stage's share over load. Pure.

Q = X · R of a stage is what it holds (Little 1961). In a closed loop past saturation each further request
waits at the bottleneck: its slope goes to 1, that of all others to 0 (Berger, Bregman and Kogan 1999).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layers.layer3_sweep.model import StageSlope, SweepPoint
from layers.layer3_sweep.points import at, mean_over, rate, residence_s

LAST_POINTS = 2
"""The slope past the bend: of the last two loads, since a third one may lie before it."""
BOTTLENECK_SLOPE = 0.5
"""More than half of what is added waits there: no other stage can hold as much."""
WAITS = ("queue", "queued", "wait", "admission", "pending", "scheduled")
"""Words in the names of stages that hold requests without working on them."""


def stage_slopes(points: Sequence[SweepPoint]) -> tuple[StageSlope, ...]:
    """Every stage that all of the last points name, the steepest first."""
    last = points[-LAST_POINTS:]
    if len(last) < 2:
        return ()
    named = [set(swept.stage_ms or ()) for point in last for swept in point.passes]
    slopes = (_slope(last, stage) for stage in sorted(set.intersection(*named)))
    return tuple(sorted(slopes, key=lambda s: -s.slope))


def unaccounted_share(points: Sequence[SweepPoint]) -> float | None:
    """The share of the mean time of a request at the last load that no stage names; None without stages or
    without that time. Stages of a server that overlap may make it negative."""
    if not points:
        return None
    whole_s = residence_s(points[-1])
    named_ms = mean_over(points[-1], lambda s: sum(s.stage_ms.values()) if s.stage_ms else None)
    return 1 - named_ms / 1000 / whole_s if named_ms is not None and whole_s else None


def bottleneck(slopes: Sequence[StageSlope]) -> StageSlope | None:
    """The stage that takes most of what is added; None where none does."""
    return slopes[0] if slopes and slopes[0].slope >= BOTTLENECK_SLOPE else None


def _slope(points: Sequence[SweepPoint], stage: str) -> StageSlope:
    held = [rate(p) * (mean_over(p, lambda s: (s.stage_ms or {}).get(stage)) or 0.0) / 1000 for p in points]
    slope = float(np.polyfit([at(p) for p in points], held, 1)[0])
    return StageSlope(stage, slope, held[-1], any(word in stage.lower() for word in WAITS))
