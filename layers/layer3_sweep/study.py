"""The cells of a study beside each other: each with the one that differs in one setting, by ratio. Pure.

    ratio       of geometric means over repeats
    interval    t, out of the spread of repeats pooled over all cells (of a tail: over those of its mix),
                since two or three repeats of a cell alone say next to nothing of it
    clear       whether it would be clear of 1 as well if all comparisons shared the 5 % (Bonferroni)

Cells of different mixes do different work and are never compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from layers.evidence.statistics import TAIL
from layers.layer3_sweep.batch_laws import stage_laws
from layers.layer3_sweep.elasticity import Spread
from layers.layer3_sweep.grid import beats
from layers.layer3_sweep.model import Curve, StageLaw, SweepPass, SweepPoint
from layers.layer3_sweep.points import P90, P95, P99, Tail, failed_share, rate, tail, within_budget
from layers.layer3_sweep.protocol import MIX

LEVEL = 0.05
"""Up to this much more or less is called level, where a whole interval lies within. perfkit's choice."""
TAILS = (P99, P95, P90)
"""p99 where every cell of a mix has the requests for it in every repeat, else p95, else p90."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """`value` over the reference with its 95 % interval; None without repeats. `clear`: of 1, all comparisons
    of the study together."""

    value: float
    low: float | None
    high: float | None
    clear: bool

    @property
    def level(self) -> bool:
        """Whether the interval rules out more than LEVEL of difference either way."""
        if self.low is None or self.high is None:
            return False
        return self.low > 1 / (1 + LEVEL) and self.high < 1 + LEVEL


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cell and its twin, which has `against` in place of the cell's own value of one setting. `tail` is of
    the quantile that the mix has; None where it has none."""

    mix: str
    settings: Mapping[str, str]
    setting: str
    against: str
    throughput: Ratio
    tail: Ratio | None

    @property
    def own(self) -> str:
        return self.settings[self.setting]


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One cell. `tail_ms`: the quantile of the end to end that its mix has, None where it has none;
    `on_front`: no other cell of the mix serves as much with as low a tail, and one of both better."""

    settings: Mapping[str, str]
    repeats: int
    throughput_rps: float
    throughput_sd: float | None
    tail_ms: float | None
    failed_share: float
    on_front: bool

    def text(self, tail: str) -> str:
        """`policy=unified: 14.2 req/s, p95 812 ms`."""
        named = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        told = f", {tail} {self.tail_ms:,.0f} ms" if self.tail_ms is not None else ""
        return f"{named}: {self.throughput_rps:.4g} req/s{told}"


@dataclass(frozen=True, slots=True)
class MixRows:
    """The cells of one mix, the fastest first; `tail` names the quantile ("p95", empty for none). `laws`:
    what a stage's batches cost in them, for each policy (or whatever changes how a batch is worked on)."""

    mix: str
    tail: str
    cells: tuple[StudyCell, ...]
    laws: tuple[tuple[str, StageLaw], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A study's numbers. `freedom`: degrees of freedom of the pooled spread."""

    mixes: tuple[MixRows, ...]
    comparisons: tuple[Comparison, ...]
    freedom: int

    @property
    def ratios(self) -> list[Ratio]:
        found = [(c.throughput, c.tail) for c in self.comparisons]
        return [ratio for pair in found for ratio in pair if ratio is not None]

    @property
    def detectable(self) -> float | None:
        """The widest interval of a throughput, as the ratio that would have been told; None without one."""
        halves = [math.sqrt(t.high / t.low) for c in self.comparisons if (t := c.throughput).low and t.high]
        return max(halves, default=None)


def compared(curves: Sequence[Curve], reference: Mapping[str, str], works: str = "policy") -> Compared:
    """All comparisons of the cells with one point that stands and a repeat of which none served nothing;
    `works` names the setting under which batches of a stage are not alike."""
    cells = [curve for curve in curves if not curve.arm and within_budget(curve) and min(_rates(curve)) > 0]
    tails = {mix: _tail(_of(cells, mix)) for mix in _mixes(cells)}
    twins = list(_twins(cells, reference))
    scale = _Scale(
        rates=_pooled([_rates(curve) for curve in cells]),
        tails=tails,
        tails_ms={m: _pooled([_tails_ms(c, told) for c in _of(cells, m)]) for m, told in tails.items()},
        many=len(twins) * (2 if any(tails.values()) else 1),
    )
    rows = tuple(_mix_rows(_of(cells, mix), mix, found, works) for mix, found in tails.items())
    comparisons = tuple(scale.comparison(*twin) for twin in twins)
    return Compared(rows, comparisons, scale.rates.freedom if scale.rates else 0)


@dataclass(frozen=True, slots=True)
class _Scale:
    """By what ratios are judged: the spread of throughputs, of each mix its tail and the spread of that, and
    how many ratios share the 5 %."""

    rates: Spread | None
    tails: Mapping[str, Tail | None]
    tails_ms: Mapping[str, Spread | None]
    many: int

    def comparison(self, cell: Curve, twin: Curve, setting: str) -> Comparison:
        mix = cell.settings[MIX]
        own_ms, other_ms = _tails_ms(cell, self.tails[mix]), _tails_ms(twin, self.tails[mix])
        told = bool(own_ms and other_ms)
        return Comparison(
            mix=mix,
            settings={name: value for name, value in cell.settings.items() if name != MIX},
            setting=setting,
            against=twin.settings[setting],
            throughput=_ratio(_rates(cell), _rates(twin), self.rates, self.many),
            tail=_ratio(own_ms, other_ms, self.tails_ms[mix], self.many) if told else None,
        )


def _twins(cells: Sequence[Curve], reference: Mapping[str, str]) -> Iterator[tuple[Curve, Curve, str]]:
    """Each cell with that which has the reference's value of one setting, and all else alike."""
    by_settings = {tuple(sorted(curve.settings.items())): curve for curve in cells}
    for cell in cells:
        for name, value in reference.items():
            if cell.settings.get(name) not in (None, value):
                twin = by_settings.get(tuple(sorted({**cell.settings, name: value}.items())))
                if twin is not None:
                    yield cell, twin, name


def _mixes(cells: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.settings[MIX] for curve in cells))


def _of(cells: Sequence[Curve], mix: str) -> list[Curve]:
    return [curve for curve in cells if curve.settings[MIX] == mix]


def _point(curve: Curve) -> SweepPoint:
    """The one load of a cell."""
    return within_budget(curve)[-1]


def _rates(curve: Curve) -> list[float]:
    return [swept.throughput_rps for swept in _point(curve).passes]


def _tail(cells: Sequence[Curve]) -> Tail | None:
    return tail([_point(curve) for curve in cells], TAILS)


def _tails_ms(curve: Curve, tail: Tail | None) -> list[float]:
    if tail is None:
        return []
    times = [swept.timings[tail.timing] for swept in _point(curve).passes if tail.timing in swept.timings]
    return [ms for one in times if (ms := one.quantile_ms(tail.quantile)) is not None]


def _pooled(cells: Sequence[Sequence[float]]) -> Spread | None:
    """The standard deviation of logarithms between repeats, over all cells with two at least."""
    repeated = [[math.log(value) for value in values] for values in cells if len(values) > 1]
    freedom = sum(len(values) - 1 for values in repeated)
    if not freedom:
        return None
    squares = sum((len(values) - 1) * variance(values) for values in repeated)
    return Spread(math.sqrt(squares / freedom), freedom)


def _ratio(own: Sequence[float], other: Sequence[float], spread: Spread | None, many: int) -> Ratio:
    ratio = fmean(map(math.log, own)) - fmean(map(math.log, other))
    if spread is None:
        return Ratio(math.exp(ratio), None, None, False)
    from scipy.special import stdtrit

    error = spread.relative * math.sqrt(1 / len(own) + 1 / len(other))
    half = float(stdtrit(spread.freedom, 1 - TAIL)) * error
    strict = float(stdtrit(spread.freedom, 1 - TAIL / max(1, many))) * error
    return Ratio(math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half), abs(ratio) > strict)


def _mix_rows(cells: Sequence[Curve], mix: str, tail: Tail | None, works: str) -> MixRows:
    ways = dict.fromkeys(curve.settings.get(works, "") for curve in cells)
    laws = [
        (way, law)
        for way in ways
        for law in stage_laws(_passes([c for c in cells if c.settings.get(works, "") == way]))
    ]
    name = f"p{100 * tail.quantile:g}" if tail is not None else ""
    made = sorted(_cells(cells, tail), key=lambda cell: -cell.throughput_rps)
    return MixRows(mix, name, tuple(made), tuple(laws))


def _cells(cells: Sequence[Curve], tail: Tail | None) -> Iterator[StudyCell]:
    points = [_point(curve) for curve in cells]
    tails_ms = tail.values_ms if tail is not None else (0.0,) * len(points)
    values = [(rate(point), tail_ms) for point, tail_ms in zip(points, tails_ms, strict=True)]
    for curve, point, own in zip(cells, points, values, strict=True):
        yield StudyCell(
            settings={name: value for name, value in curve.settings.items() if name != MIX},
            repeats=len(point.passes),
            throughput_rps=own[0],
            throughput_sd=point.throughput_sd,
            tail_ms=own[1] if tail is not None else None,
            failed_share=failed_share(point),
            on_front=not any(beats(other, own) for other in values),
        )


def _passes(cells: Sequence[Curve]) -> list[SweepPass]:
    return [swept for curve in cells for swept in _point(curve).passes]
