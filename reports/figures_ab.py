"""An A/B drawn: paired dots beside a forest of changes, latency of each run, runs over the session."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from layers.evidence.wording import limit
from reports.figure_data import AbLatency, AbPairs, AbTimeline
from reports.figure_style import BLUE, FAINT, GREY, ORANGE, PALE, SMALL_POINTS, VERMILION, canvas

COLOURS = {"a": BLUE, "b": ORANGE}
MARKERS = {"a": "o", "b": "s"}
PAIRS_INCHES, ROW_INCHES, MOST_ROWS = 2.4, 0.16, 24
PLOT_INCHES = 2.6
HEADROOM = 1.15
WIDE = 10.0
"""Times that span less stand on a plain axis: a logarithmic one would have no number on it."""
DECADES, FINE = 100.0, (1.0, 2.0, 5.0)
"""Within so many times powers of ten alone would be one number or two."""
WHOLE_MS = 1000
MARKED = 8
"""Points of a line that are marked: more are a distribution, not percentiles."""
EDGE = 0.06
"""Of the range, kept free at both ends of an axis."""


def draw_ab_pairs(data: AbPairs, title: str, about: str) -> Figure:
    """Levels at the left, changes at the right."""
    figure = canvas(PAIRS_INCHES + ROW_INCHES * min(len(data.pairs), MOST_ROWS), title, about)
    levels, changes = figure.subplots(1, 2, width_ratios=(1, 2))
    _levels(levels, data)
    _forest(changes, data)
    return figure


def _levels(axes: Axes, data: AbPairs) -> None:
    for pair in data.pairs:
        axes.plot((0, 1), pair, color=GREY, linewidth=1)
        for place, (arm, value) in enumerate(zip("ab", pair, strict=True)):
            axes.plot(place, value, MARKERS[arm], color=COLOURS[arm], markersize=5)
    axes.set_xticks((0, 1), ("A", "B"))
    axes.set_xlim(-0.4, 1.4)
    axes.set_ylabel(data.unit, fontsize=SMALL_POINTS)
    axes.tick_params(labelsize=SMALL_POINTS)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)


def _forest(axes: Axes, data: AbPairs) -> None:
    """A row a pair, and one of their mean below them."""
    rows = len(data.changes)
    if data.floor is not None:
        axes.axvspan(-data.floor, data.floor, color=FAINT, zorder=0)
    for edge in (-data.margin, data.margin) if data.margin is not None else ():
        axes.axvline(edge, color=VERMILION, linewidth=1, linestyle=(0, (4, 2)))
    axes.axvline(0, color=GREY, linewidth=1)
    axes.plot(data.changes, range(rows), "o", color=GREY, markersize=4, linestyle="none")
    if data.interval is not None:
        axes.plot(data.interval, (rows, rows), color=BLUE, linewidth=2.4, solid_capstyle="butt")
    axes.plot(data.mean, rows, "D", color=BLUE, markersize=6)
    names = [f"{n}" for n in range(1, rows + 1)] if rows <= MOST_ROWS else [""] * rows
    axes.set_yticks(range(rows + 1), [*names, "mean"], fontsize=SMALL_POINTS)
    axes.set_ylim(rows + 0.7, -0.7)
    reach = HEADROOM * max(map(abs, _reached(data)), default=0.0)
    axes.set_xlim(-reach or -1, reach or 1)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda share, _: limit(round(share, 6)))
    axes.tick_params(axis="x", labelsize=SMALL_POINTS)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("change from A to B", fontsize=SMALL_POINTS)


def _reached(data: AbPairs) -> list[float]:
    """All that the axis of changes has to hold."""
    return [*data.changes, *(data.interval or ()), data.floor or 0.0, data.margin or 0.0]


def draw_ab_latency(data: AbLatency, title: str, about: str) -> Figure:
    """Percentiles on a logarithmic axis of time."""
    figure = canvas(PLOT_INCHES, title, about)
    axes = figure.subplots()
    for line in data.lines:
        shares, at_ms = zip(*line.points, strict=True)
        marked = MARKERS[line.arm] if len(line.points) <= MARKED else ""
        axes.plot(at_ms, shares, color=COLOURS[line.arm], marker=marked, markersize=3, linewidth=1)
    times = [ms for line in data.lines for _, ms in line.points]
    if max(times) >= WIDE * min(times):
        axes.set_xscale("log")
        subs = FINE if max(times) < DECADES * min(times) else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_minor_formatter(lambda _ms, _: "")
    axes.xaxis.set_major_formatter(lambda ms, _: f"{ms:,.0f}" if ms >= WHOLE_MS else f"{ms:.4g}")
    axes.yaxis.set_major_formatter(lambda share, _: limit(round(share, 4)))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("ms", fontsize=SMALL_POINTS)
    axes.tick_params(labelsize=SMALL_POINTS)
    axes.grid(color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    _legend(figure)
    return figure


def draw_ab_timeline(data: AbTimeline, title: str, about: str) -> Figure:
    """Runs in their order; those left out are crosses on a shade."""
    figure = canvas(PLOT_INCHES, title, about)
    axes = figure.subplots()
    latest = max(mark.at_min for mark in data.marks) or 1.0
    for mark in data.marks:
        if mark.left_out:
            axes.axvspan(mark.at_min - EDGE * latest / 4, mark.at_min + EDGE * latest / 4, color=PALE)
        look = "x" if mark.left_out else MARKERS[mark.arm]
        axes.plot(mark.at_min, mark.value, look, color=COLOURS[mark.arm], markersize=6)
    axes.set_xlim(-EDGE * latest, (1 + EDGE) * latest)
    axes.set_xlabel("minutes since the first run began", fontsize=SMALL_POINTS)
    axes.set_ylabel(data.unit, fontsize=SMALL_POINTS)
    axes.tick_params(labelsize=SMALL_POINTS)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    _legend(figure, left_out=any(mark.left_out for mark in data.marks))
    return figure


def _legend(figure: Figure, *, left_out: bool = False) -> None:
    keys = [
        Line2D([], [], color=COLOURS[arm], marker=MARKERS[arm], linestyle="none", label=arm.upper())
        for arm in COLOURS
    ]
    if left_out:
        keys.append(Line2D([], [], color=GREY, marker="x", linestyle="none", label="left out"))
    figure.legend(handles=keys, loc="outside lower left", ncols=3, frameon=False)
