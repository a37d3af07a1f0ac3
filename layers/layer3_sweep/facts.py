"""What the guards of one curve, and of a whole sweep, look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.collectors.load.plan import Load
from layers.layer3_sweep.elasticity import last_doubling
from layers.layer3_sweep.model import Curve, SweepPass, SweepPoint
from layers.layer3_sweep.points import rate


@dataclass(frozen=True, slots=True)
class CurveFacts:
    """One curve; `within` are the points that its class is called by."""

    curve: Curve
    within: Sequence[SweepPoint]

    @property
    def passes(self) -> list[SweepPass]:
        """Those that stand, of all loads."""
        return [swept for point in self.curve.points for swept in point.passes]

    @property
    def deciding(self) -> list[SweepPoint]:
        """The points that the class hangs on: the last doubling, and the peak."""
        doubling = last_doubling(self.within)
        if doubling is None:
            return list(self.within)
        peak = max(self.within, key=rate)
        return [point for point in self.within if point in (*doubling, peak)]


@dataclass(frozen=True, slots=True)
class SweepFacts:
    """All curves, and the loads that were planned and not run."""

    curves: Sequence[Curve]
    not_run: Sequence[Load]
