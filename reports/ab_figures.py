"""The figures of an A/B, as data: pairs with their ratios, latency of each run, runs over the session."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import counted
from reports.ab_document import AbRun, Entry
from reports.figure_data import AbLatency, AbPairs, AbTimeline, LatencyLine, RunMark
from reports.model import Figure

LATENCIES = ("e2e", "ttft", "first_audio")
LEAST_SHARES = 2
NS_PER_MINUTE = 60e9
NAMES = {"e2e": "end to end", "ttft": "first token", "first_audio": "first audio"}


def ab_figures(r: AbRun, primary: Entry) -> Iterator[Figure]:
    """Those that the run has the numbers for."""
    yield _pairs(r, primary)
    for timing in LATENCIES:
        lines = tuple(_lines(r, timing))
        if len({line.arm for line in lines}) > 1:
            yield _latency(r, timing, lines)
    marks = tuple(_marks(r))
    if marks:
        yield _timeline(r, primary, marks)


def _pairs(r: AbRun, primary: Entry) -> Figure:
    margin = r.run.document["question"]["margin"]
    n = counted(primary["n_pairs"], "pair")
    return Figure(
        name=f"run{r.run.id}-ab-pairs",
        title=f"{primary['metric']}: both arms, pair by pair",
        about=f"{n} of server starts at {primary['load']}; {primary['unit']}",
        caption="A line joins the starts of a pair. At the right the change of each pair, their mean with "
        "its 95 % interval, the A/A floor as a grey band, the margin as dashed lines.",
        alternative=f"{n}: mean change {100 * (primary['ratio'] - 1):+.2f} %.",
        data=AbPairs(
            unit=primary["unit"],
            pairs=tuple(zip(primary["a"], primary["b"], strict=True)),
            changes=tuple(ratio - 1 for ratio in primary["ratios"]),
            mean=primary["ratio"] - 1,
            interval=None if primary["low"] is None else (primary["low"] - 1, primary["high"] - 1),
            floor=None if primary["floor_pct"] is None else primary["floor_pct"] / 100,
            margin=margin,
        ),
        basis=r.basis,
    )


def _lines(r: AbRun, timing: str) -> Iterator[LatencyLine]:
    """Of runs that count: their distribution, or two percentiles and more."""
    for run in r.run.document["runs"]:
        told = run["quantiles_ms"].get(timing, {})
        percentiles = sorted((float(share), ms) for share, ms in told.items() if ms > 0)
        points = [(share, ms) for share, ms in run["ecdf_ms"].get(timing, [])] or percentiles
        if not run["excluded"] and len(points) >= LEAST_SHARES:
            yield LatencyLine(run["arm"], tuple(points))


def _latency(r: AbRun, timing: str, lines: tuple[LatencyLine, ...]) -> Figure:
    return Figure(
        name=f"run{r.run.id}-ab-{timing}",
        title=f"Latency, {NAMES[timing]}: share of requests that took no longer",
        about=f"{counted(len(lines), 'run')}; every request where they are told, else the percentiles that a "
        "run has the requests for",
        caption="One line a run. Lines between marks join percentiles only.",
        alternative=f"Distributions of {counted(len(lines), 'run')} of both arms.",
        data=AbLatency(lines),
        basis=r.basis,
    )


def _marks(r: AbRun) -> Iterator[RunMark]:
    """All runs over the session; none where one does not tell when it was."""
    runs = [run for run in r.run.document["runs"] if run["value"] is not None]
    if not runs or any(run["begun_ns"] is None for run in runs):
        return
    first = min(run["begun_ns"] for run in runs)
    for run in runs:
        yield RunMark(
            arm=run["arm"],
            at_min=(run["begun_ns"] - first) / NS_PER_MINUTE,
            value=run["value"],
            left_out=bool(run["excluded"]),
        )


def _timeline(r: AbRun, primary: Entry, marks: tuple[RunMark, ...]) -> Figure:
    out = sum(mark.left_out for mark in marks)
    return Figure(
        name=f"run{r.run.id}-ab-timeline",
        title=f"{primary['metric']} over the session",
        about=f"{counted(len(marks), 'run')}, {out} left out; {primary['unit']}",
        caption="In the order of running. A shaded cross is a run that a rule left out.",
        alternative=f"{counted(len(marks), 'run')} over the session, {out} of them left out.",
        data=AbTimeline(primary["unit"], marks),
        basis=r.basis,
    )
