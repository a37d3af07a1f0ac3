"""A sweep's curve as a figure: throughput, latency, utilisation and accuracy over the loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reports.figure_data import SweepCurves, SweepPanel, SweepSeries
from reports.model import Basis, Figure
from reports.sweep_document import CONTROL, Entry, SweepRun

MARKED = {"plateau_start": "plateau start", "slo_limit": "SLO limit"}
TIMES = (("latency_ms", "end to end"), ("ttft_ms", "TTFT"), ("first_audio_ms", "first audio"))
STATISTICS = (("p50", "main"), ("mean", "main"), ("p99", "tail"), ("p95", "tail"))
PERCENT_TOP = 105.0


def sweep_figure(r: SweepRun, curve: Entry, basis: Basis) -> Figure:
    """The curve with its control, where there is one."""
    points = [p for p in r.pooled(curve) if not p["void"]]
    panels = tuple(_panels(r, curve, points))
    closed = points[0].get("concurrency") is not None
    loads = tuple(sorted({load for p in r.pooled(curve) if (load := _load(p)) is not None}))
    marks = [(p["concurrency"], MARKED[p["name"]]) for p in curve["named"] if p["name"] in MARKED]
    word, first, last = curve["class"], points[0]["throughput_rps"], points[-1]["throughput_rps"]
    return Figure(
        name=f"run{r.run.id}-sweep",
        title="Throughput, latency, utilisation and accuracy over load",
        about=f"{curve_name(curve)}{word}; n = {basis.n:,} {basis.n_unit}",
        caption="Bars are one standard deviation of repeats, a cross is a repeat that a check took out.",
        alternative=f"Curves over {len(loads)} loads: throughput goes from {first:.4g} to {last:.4g} "
        "requests a second; the numbers stand in the table.",
        data=SweepCurves("in flight" if closed else "arrivals a second", loads, panels, tuple(marks)),
        basis=basis,
    )


def curve_name(curve: Entry) -> str:
    """`control, batch=8: `; empty for the one curve of a plain sweep."""
    settings = (f"{name}={value}" for name, value in sorted(curve["settings"].items()))
    parts = [*filter(None, [curve["arm"]]), *settings]
    return f"{', '.join(parts)}: " if parts else ""


def _load(point: Entry) -> float | None:
    found: float | None = point.get("concurrency") or point.get("rate_per_s")
    return found


def _panels(r: SweepRun, curve: Entry, points: Sequence[Entry]) -> Iterator[SweepPanel]:
    control = r.pooled(curve, CONTROL) if curve["arm"] != CONTROL else []
    yield SweepPanel("throughput, requests a second", tuple(_throughput(r, curve, points, control)))
    for time, name in TIMES:
        if times := tuple(_times(points, time)):
            alone = f" {times[0].label}" if len(times) == 1 else ""
            yield SweepPanel(f"{name}{alone}, ms", times, logarithmic=True)
    busy = _series("", "main", points, lambda p: p.get("gpu_util_pct"))
    if busy:
        yield SweepPanel(f"GPU utilisation, %{_doubt(curve)}", (busy,), top=PERCENT_TOP)
    if accuracy := _series("", "main", points, lambda p: p.get("accuracy")):
        yield SweepPanel(f"accuracy{_metric(r, curve)}", (accuracy,))


def _throughput(
    r: SweepRun, curve: Entry, points: Sequence[Entry], control: Sequence[Entry]
) -> Iterator[SweepSeries]:
    own = _series("this server", "main", points, _rate, lambda p: p.get("throughput_sd"))
    other = _series("control", "control", control, _rate, lambda p: p.get("throughput_sd"))
    void = _series("void repeat", "void", r.void(curve), _rate)
    yield from (series for series in (own, other, void) if series)


def _rate(point: Entry) -> float | None:
    found: float | None = point.get("throughput_rps")
    return found


def _times(points: Sequence[Entry], time: str) -> Iterator[SweepSeries]:
    """The middle and the tail of one time, each by the first statistic that is there."""
    told: dict[str, SweepSeries] = {}
    for statistic, kind in STATISTICS:
        series = _series(statistic, kind, points, lambda p, s=statistic: p.get(time, {}).get(s))  # type: ignore[misc]
        if series and kind not in told:
            told[kind] = series
    yield from told.values()


def _series(
    label: str,
    kind: str,
    points: Sequence[Entry],
    value_of: Callable[[Entry], float | None],
    spread_of: Callable[[Entry], float | None] = lambda _: None,
) -> SweepSeries | None:
    """The points that have a value; None where none has."""
    told = [
        (load, value, spread_of(p))
        for p in points
        if (load := _load(p)) is not None and (value := value_of(p)) is not None
    ]
    return SweepSeries(label, kind, tuple(told)) if told else None


def _doubt(curve: Entry) -> str:
    useless = any(u["metric"] == "nvml_util_pct" and u["trend"] == "useless" for u in curve["utilisation"])
    return " (tells nothing: see below)" if useless else ""


def _metric(r: SweepRun, curve: Entry) -> str:
    """Which accuracy, where the repeats say."""
    told = {
        p["accuracy_of"]["metric"]
        for p in r.run.document["points"]
        if p["repeat"] is not None and p["settings"] == curve["settings"] and "accuracy_of" in p
    }
    return f", {', '.join(sorted(told))}" if told else ""
