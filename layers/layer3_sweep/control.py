"""The server under test beside another one, load by load: as plainly where the other one wins. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layers.evidence.statistics import TAIL
from layers.layer3_sweep.elasticity import Spread, pooled_spread
from layers.layer3_sweep.model import Curve, SweepPoint
from layers.layer3_sweep.points import at, failed_share, rate


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One load of both arms. `ratio` is control over server under test, with its 95 % interval out of the
    spread of repeats (None without repeats); shares are of requests that were shed or failed."""

    load: float
    tested_rps: float
    control_rps: float
    ratio: float
    low: float | None
    high: float | None
    tested_failed: float
    control_failed: float

    @property
    def ahead(self) -> bool:
        """Whether the control serves more, beyond the interval where there is one."""
        return (self.ratio if self.low is None else self.low) > 1

    @property
    def behind(self) -> bool:
        """Whether it serves less, likewise."""
        return (self.ratio if self.high is None else self.high) < 1


def control_rows(curves: Sequence[Curve], tested: Curve) -> list[ControlRow]:
    """Every load that stands in both the curve of the server under test and that of the control with the same
    settings (or with none); empty without a control."""
    controls = [c for c in curves if c.arm and c.settings in (tested.settings, {})]
    return list(_rows(tested, controls[0])) if controls else []


def _rows(tested: Curve, control: Curve) -> Iterator[ControlRow]:
    pairs = [
        (a, b) for a in tested.points for b in control.points if a.load == b.load and a.stands and b.stands
    ]
    for a, b in pairs:
        if not (a.throughput_rps and b.throughput_rps):
            continue
        ratio, factor = rate(b) / rate(a), _factor(a, b, tested, control)
        yield ControlRow(
            load=at(a),
            tested_rps=rate(a),
            control_rps=rate(b),
            ratio=ratio,
            low=ratio / factor if factor else None,
            high=ratio * factor if factor else None,
            tested_failed=failed_share(a),
            control_failed=failed_share(b),
        )


def _factor(a: SweepPoint, b: SweepPoint, tested: Curve, control: Curve) -> float | None:
    """By how much the ratio may be off either way: t interval of its logarithm, spread pooled in each arm."""
    from scipy.special import stdtrit

    one, other = _spread(tested), _spread(control)
    if one is None or other is None:
        return None
    variance = one.relative**2 / len(a.passes) + other.relative**2 / len(b.passes)
    half = float(stdtrit(one.freedom + other.freedom, 1 - TAIL)) * math.sqrt(variance)
    return math.exp(half)


def _spread(curve: Curve) -> Spread | None:
    return pooled_spread([point for point in curve.points if point.stands and point.throughput_rps])
