"""Layer 3 as JSON: the names of the contract, and everything else that was found beside them.

`points` has one entry a repeat and one with `repeat: null` for all repeats of a load together; `curve` is
that of the server under test, `curves` all of them. What was not measured is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from layers.evidence.statistics import minimum_n_for_quantile
from layers.evidence.wording import clipped
from layers.layer3_sweep.batch_laws import law_text
from layers.layer3_sweep.control import ControlRow
from layers.layer3_sweep.elasticity import pooled_spread, throughput_interval
from layers.layer3_sweep.grid import grid_rows
from layers.layer3_sweep.model import (
    Counts,
    Curve,
    Latency,
    StageLaw,
    SweepAnalysis,
    SweepPass,
    SweepPoint,
    Timing,
    Usl,
)
from layers.layer3_sweep.named_points import (
    ASYMPTOTE,
    LINEAR_LIMIT,
    P99_INFLECTION,
    PLATEAU_START,
    POWER,
    SLO_LIMIT,
    find,
)
from layers.layer3_sweep.points import at, counts_of, mean_over, within_budget
from layers.layer3_sweep.stage_slopes import unaccounted_share
from layers.layer3_sweep.utilisation import device_mean
from parsers.series_model import Metric

QUANTILE_NAMES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99_9"}
CONTRACT_POINTS = (LINEAR_LIMIT, POWER, PLATEAU_START, P99_INFLECTION, SLO_LIMIT, ASYMPTOTE)
TIMES = {t: "latency_ms" if t is Timing.E2E else f"{t}_ms" for t in Timing}


def sections(
    analysis: SweepAnalysis,
    primary: Curve | None,
    control: Sequence[ControlRow] = (),
    cells: Sequence[Curve] = (),
) -> dict[str, Any]:
    """`points`, `curve`, `curves`, `control`, `grid` (of these cells), `not_run`, `lost` and `regime` of the
    document."""
    made: dict[str, Any] = {
        "points": [entry for curve in analysis.curves for entry in _points(curve)],
        "curve": _curve(primary) if primary else None,
        "curves": [_curve(curve) for curve in analysis.curves],
        "control": msgspec.to_builtins(control),
        "grid": msgspec.to_builtins(grid_rows(cells, primary.arm) if primary else []),
        "not_run": [str(load) for load in analysis.not_run],
        "lost": list(analysis.lost),
        "regime": analysis.regime,
    }
    return {name: clipped(part) for name, part in made.items()}


def _points(curve: Curve) -> Iterator[dict[str, Any]]:
    for point in curve.points:
        for swept in sorted((*point.passes, *point.void), key=lambda s: s.repeat):
            yield _told(pass_entry(swept, void=swept in point.void))
        yield _told(_pooled(curve, point))


def _told(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry without what was not measured; `repeat` says by being null that it is of all repeats."""
    return {name: value for name, value in entry.items() if value is not None or name == "repeat"}


def _place(point: SweepPoint | SweepPass, arm: str, settings: Mapping[str, str]) -> dict[str, Any]:
    return {
        "arm": arm,
        "settings": dict(settings),
        "concurrency": point.load.concurrency,
        "rate_per_s": point.load.rate_per_s,
    }


def _counts(counts: Counts) -> dict[str, Any]:
    if not counts.told:
        return {}
    return {
        "ok": counts.ok,
        "shed": counts.shed if "shed" not in counts.untold else None,
        "errors": counts.errors if "errors" not in counts.untold else None,
        "attempts": counts.attempts,
        "by_outcome": dict(counts.by_outcome),
    }


def pass_entry(swept: SweepPass, *, void: bool) -> dict[str, Any]:
    """One repeat; `source` is the tool that ran it."""
    return {
        **_place(swept, swept.arm, swept.settings),
        "repeat": swept.repeat,
        "void": void,
        "source": swept.source,
        "window": msgspec.to_builtins(swept.window),
        "throughput_rps": swept.throughput_rps,
        **_counts(swept.counts),
        **{TIMES[timing]: _latency(latency) for timing, latency in swept.timings.items()},
        "rtf": _latency(swept.rtf) if swept.rtf else None,
        "underrun_share": swept.underrun_share,
        "output_tokens_per_s": swept.output_tokens_per_s,
        "audio_s_per_s": swept.audio_s_per_s,
        "gpu_util_pct": _utilisation_pct(_alone(swept)),
        "devices": msgspec.to_builtins(swept.devices),
        "host": msgspec.to_builtins(swept.host),
        "server": msgspec.to_builtins(swept.server),
        "client": msgspec.to_builtins(swept.client),
        "accuracy": swept.accuracy.value if swept.accuracy else None,
        "accuracy_of": msgspec.to_builtins(swept.accuracy),
        "in_flight": swept.in_flight,
        "littles_ratio": swept.littles_ratio,
        "stage_ms": dict(swept.stage_ms) if swept.stage_ms is not None else None,
        "batches": msgspec.to_builtins(swept.batches),
        "machine": swept.machine or None,
    }


def _alone(swept: SweepPass) -> SweepPoint:
    return SweepPoint(swept.load, (swept,), (), swept.throughput_rps, None)


def _pooled(curve: Curve, point: SweepPoint) -> dict[str, Any]:
    """All repeats that stand: sums of counts, means of the rest. A quantile is a mean of the repeats' own."""
    timings = [timing for timing in Timing if all(timing in swept.timings for swept in point.passes)]
    return {
        **_place(point, curve.arm, curve.settings),
        "repeat": None,
        "repeats": len(point.passes),
        "void": not point.stands,
        "throughput_rps": point.throughput_rps,
        "throughput_sd": point.throughput_sd,
        "throughput_interval": throughput_interval(point, pooled_spread(within_budget(curve))),
        **(_counts(counts_of(point)) if point.stands else {}),
        **({TIMES[t]: _mean_latency(point, t) for t in timings} if point.stands else {}),
        "gpu_util_pct": _utilisation_pct(point),
        "accuracy": mean_over(point, lambda s: s.accuracy.value if s.accuracy else None),
        "in_flight": mean_over(point, lambda s: s.in_flight),
        "littles_ratio": mean_over(point, lambda s: s.littles_ratio),
        "output_tokens_per_s": mean_over(point, lambda s: s.output_tokens_per_s),
        "audio_s_per_s": mean_over(point, lambda s: s.audio_s_per_s),
    }


def _utilisation_pct(point: SweepPoint) -> float | None:
    """NVML's; the share of time with an operation of devices that have no NVML."""
    share = device_mean(point, Metric.DEVICE_OP_RATIO)
    nvml = device_mean(point, Metric.NVML_UTIL_PCT)
    return nvml if nvml is not None else 100 * share if share is not None else None


def _latency(latency: Latency) -> dict[str, Any]:
    """Mean, quantiles by name with their intervals, and the same with failures as infinite."""
    made: dict[str, Any] = {
        "n": latency.n,
        "mean": latency.mean_ms,
        "sd": latency.sd_ms,
        "max": latency.max_ms,
        **{_name(q.quantile): q.value_ms for q in latency.quantiles},
        "intervals": {
            _name(q.quantile): [q.low_ms, q.high_ms] for q in latency.quantiles if q.low_ms is not None
        },
        "not_estimable": _not_estimable(latency),
        "with_failures": {_name(q.quantile): q.value_ms for q in latency.with_failures},
        "definition": latency.definition,
    }
    return {name: value for name, value in made.items() if value is not None}


def _not_estimable(latency: Latency) -> list[str]:
    """Quantiles that n does not allow; those that another tool left out are not among them."""
    if latency.n is None:
        return []
    told = {q.quantile for q in latency.quantiles}
    few = (q for q in QUANTILE_NAMES if latency.n < minimum_n_for_quantile(q))
    return [_name(q) for q in few if q not in told]


def _name(quantile: float) -> str:
    return QUANTILE_NAMES.get(quantile) or f"p{100 * quantile:g}".replace(".", "_")


def _mean_latency(point: SweepPoint, timing: Timing) -> dict[str, Any]:
    """Means over repeats of what each of them has."""
    latencies = [swept.timings[timing] for swept in point.passes]
    quantiles = sorted({q.quantile for latency in latencies for q in latency.quantiles})
    counts = [latency.n for latency in latencies if latency.n is not None]
    made: dict[str, Any] = {
        "n": sum(counts) if len(counts) == len(latencies) else None,
        "mean": mean_over(point, lambda s: s.timings[timing].mean_ms),
        **{_name(q): _mean_quantile(point, timing, q) for q in quantiles},
    }
    return {name: value for name, value in made.items() if value is not None}


def _mean_quantile(point: SweepPoint, timing: Timing, quantile: float) -> float | None:
    return mean_over(point, lambda s: s.timings[timing].quantile_ms(quantile))


def _curve(curve: Curve) -> dict[str, Any]:
    """Named points by their load, null where the curve has none, with their reasons beside them."""
    loads = {name: (p.concurrency if (p := find(curve.named, name)) else None) for name in CONTRACT_POINTS}
    return {
        "arm": curve.arm,
        "settings": dict(curve.settings),
        "class": str(curve.word),
        "because": curve.because,
        **loads,
        "named": msgspec.to_builtins(curve.named),
        "usl": _usl(curve.usl) if curve.usl else None,
        "usl_refused": curve.usl_refused,
        "elasticities": msgspec.to_builtins(curve.elasticities),
        "utilisation": msgspec.to_builtins(curve.utilisation),
        "stages": msgspec.to_builtins(curve.stages),
        "batch_laws": [batch_law(one) for one in curve.laws],
        "stages_unaccounted_share": unaccounted_share(within_budget(curve)),
        "overloaded": [at(point) for point in curve.overloaded],
    }


def batch_law(one: StageLaw) -> dict[str, Any]:
    """A law with its numbers beside each other, and in a sentence."""
    law = one.law
    return {
        "stage": one.stage,
        "a_ms": law.a_ms,
        "b_ms": law.b_ms,
        "p": law.p,
        "r2": law.r2,
        "passes": one.passes,
        "batches": one.batches,
        "best_batch": law.best_batch,
        "beyond_seen": law.beyond_seen,
        "measured_batch": one.measured_batch,
        "measured_at": one.measured_at,
        "measured_settings": dict(one.measured_settings),
        "gain": one.gain,
        "by_pass": msgspec.to_builtins(one.by_pass),
        "text": law_text(one),
    }


def _usl(usl: Usl) -> dict[str, Any]:
    """The contract's three numbers, their intervals, and whether the fit may be believed."""
    parts = {"gamma": usl.gamma, "alpha": usl.alpha, "beta": usl.beta}
    return {
        **{name: value for name, (value, _, _) in parts.items()},
        "intervals": {name: [low, high] for name, (_, low, high) in parts.items()},
        "r2": usl.r2,
        "n": usl.n,
        "fits": usl.fits,
        "because": usl.because,
        "peak": usl.peak,
    }
