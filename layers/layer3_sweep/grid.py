"""The cells of a grid beside each other: which settings and loads no other one beats. Pure.

A point is on the Pareto front when no other point of any cell serves as much with as low a tail, and one of
both strictly better. What lies behind it is never the right choice, whatever throughput is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layers.layer3_sweep.model import Curve, SweepPoint
from layers.layer3_sweep.points import at, failed_share, rate, tail, within_budget


@dataclass(frozen=True, slots=True)
class GridRow:
    """One load of one cell. `tail` names the quantile of `tail_ms` ("e2e p95"), the same for all rows."""

    settings: Mapping[str, str]
    load: float
    throughput_rps: float
    tail: str
    tail_ms: float
    failed_share: float
    on_front: bool

    @property
    def text(self) -> str:
        """`batch=8 at 16: 40 req/s, e2e p95 410 ms`."""
        cell = ", ".join(f"{name}={value}" for name, value in sorted(self.settings.items()))
        return f"{cell} at {self.load:g}: {self.throughput_rps:.4g} req/s, {self.tail} {self.tail_ms:,.0f} ms"


def grid_rows(curves: Sequence[Curve], arm: str) -> list[GridRow]:
    """Every point within the budget of failures of the cells of one arm, the fastest first; empty of fewer
    than two cells, and where no quantile is there at all points."""
    cells = [curve for curve in curves if curve.arm == arm]
    pairs = [(curve, point) for curve in cells for point in within_budget(curve)]
    told = tail([point for _, point in pairs])
    if len(cells) < 2 or told is None:
        return []
    name = f"{told.timing} p{100 * told.quantile:g}"
    rows = _rows(pairs, name, told.values_ms)
    return sorted(rows, key=lambda row: -row.throughput_rps)


def _rows(
    pairs: Sequence[tuple[Curve, SweepPoint]], name: str, tails_ms: Sequence[float]
) -> Iterator[GridRow]:
    values = [(rate(point), tail_ms) for (_, point), tail_ms in zip(pairs, tails_ms, strict=True)]
    for (curve, point), own in zip(pairs, values, strict=True):
        yield GridRow(
            settings=dict(curve.settings),
            load=at(point),
            throughput_rps=own[0],
            tail=name,
            tail_ms=own[1],
            failed_share=failed_share(point),
            on_front=not any(beats(other, own) for other in values),
        )


def beats(other: tuple[float, float], own: tuple[float, float]) -> bool:
    """Whether a point of (throughput, tail) makes another one pointless."""
    return other[0] >= own[0] and other[1] <= own[1] and other != own
