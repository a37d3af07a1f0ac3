"""A sweep over its loads: one small plot a quantity, all over the same loads on a log2 axis.

Bars are the spread of repeats (one standard deviation either way); a cross is a repeat that a check took out.
Times are drawn on a logarithmic axis, since a queue makes decades of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log2
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from reports.figure_data import SweepCurves, SweepPanel, SweepSeries
from reports.figure_style import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SMALL_POINTS,
    VERMILION,
    canvas,
    drawable,
)

COLUMNS = 2
PANEL_INCHES = 2.3
HEADROOM = 1.08
WIDE = 5.0
"""The least span of a logarithmic axis; below it there is room for one number alone."""
SMALLEST = 1e-9
LOOKS: dict[str, dict[str, Any]] = {
    "main": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "tail": {"color": ORANGE, "marker": "s", "linestyle": "-"},
    "control": {"color": GREY, "marker": "o", "linestyle": (0, (4, 2))},
    "void": {"color": VERMILION, "marker": "x", "linestyle": "none"},
}
CLOSE = 1.32
"""Loads nearer than this share a tick's room: of 8 and 10 the power of two is named."""


def draw_sweep(data: SweepCurves, title: str, about: str) -> Figure:
    """Every panel in its place, two in a row."""
    rows = ceil(len(data.panels) / COLUMNS)
    columns = min(COLUMNS, len(data.panels))
    figure = canvas(rows * PANEL_INCHES, title, about)
    grid = figure.subplots(rows, columns, squeeze=False)
    places = list(grid.flat)
    for place, axes in enumerate(places):
        if place < len(data.panels):
            _panel(axes, data, data.panels[place], named=place == 0)
        else:
            axes.set_axis_off()
    return figure


def _panel(axes: Axes, data: SweepCurves, panel: SweepPanel, *, named: bool) -> None:
    for series in panel.series:
        _series(axes, series)
    for load, name in data.marks:
        _mark(axes, load, name if named else "")
    axes.set_title(drawable(panel.title), fontsize=SMALL_POINTS, loc="left")
    _loads(axes, data)
    if panel.logarithmic and _spans(panel):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=8))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        )
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, panel.top or HEADROOM * max(_highest(panel)))
    axes.tick_params(labelsize=SMALL_POINTS)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    if len(panel.series) > 1:
        axes.legend(loc="best", fontsize=SMALL_POINTS, frameon=False, handlelength=1.8)


def _spans(panel: SweepPanel) -> bool:
    """Whether the values are far enough apart for a logarithmic axis to have several numbers."""
    values = [value for series in panel.series for _, value, _ in series.points]
    return min(values) > 0 and max(values) / min(values) >= WIDE


def _highest(panel: SweepPanel) -> Iterator[float]:
    """The top of every bar of a panel; its axis begins at 0 and has a length."""
    yield SMALLEST
    for series in panel.series:
        yield from (value + (spread or 0.0) for _, value, spread in series.points)


def _series(axes: Axes, series: SweepSeries) -> None:
    loads, values, spreads = zip(*series.points, strict=True)
    errors = [spread or 0.0 for spread in spreads] if any(spreads) else None
    look = LOOKS[series.kind]
    axes.errorbar(
        loads,
        values,
        yerr=errors,
        label=drawable(series.label),
        markersize=4,
        linewidth=1.4,
        elinewidth=1.2,
        capsize=3,
        **look,
    )


def _mark(axes: Axes, load: float, name: str) -> None:
    """A named load as a line through the panel, named in the first one."""
    axes.axvline(load, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    if name:
        axes.annotate(
            drawable(name),
            (load, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            va="bottom",
            rotation=90,
            fontsize=SMALL_POINTS,
            color=GREY,
        )


def _loads(axes: Axes, data: SweepCurves) -> None:
    """The loads that were run as ticks."""
    axes.set_xscale("log", base=2)
    shown = named_loads(data.loads)
    axes.set_xticks(shown, [f"{load:g}" for load in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(data.load_name, fontsize=SMALL_POINTS)


def named_loads(loads: Sequence[float]) -> list[float]:
    """Those that a tick names: powers of two first, then what has room beside them."""
    named: list[float] = []
    for load in sorted(loads, key=lambda load: (not log2(load).is_integer(), load)):
        if all(max(load, other) / min(load, other) >= CLOSE for other in named):
            named.append(load)
    return sorted(named)
