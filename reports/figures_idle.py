"""Where a device's idle time lies: the same time twice, by what the host did meanwhile and by its place."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layers.evidence.wording import pct, time_text
from reports.figure_data import IdleBars
from reports.figure_style import (
    BLUE,
    CAUSE_COLOURS,
    TEXT_POINTS,
    canvas,
    column_at_right,
    label,
    percent_axis,
    plain_axes,
)

BAR_INCHES = 0.34
FRAME_INCHES = 1.15
"""Axis and the titles of the two plots."""


def draw_idle(data: IdleBars, title: str, about: str) -> Figure:
    """Causes above, places below, the largest of each first."""
    causes, places = data.causes, data.places
    figure = canvas(FRAME_INCHES + (len(causes) + len(places)) * BAR_INCHES, title, about)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[len(causes), len(places)])
    _panel(above, "why: what the host did meanwhile", causes, data.idle_ns)
    _panel(below, "where in the step", places, data.idle_ns)
    for bar, (cause, _) in zip(above.patches, causes, strict=True):
        bar.set_facecolor(CAUSE_COLOURS[cause])
    below.set_xlabel("share of the idle time")
    return figure


def _panel(axes: Axes, title: str, rows: Sequence[tuple[str, int]], idle_ns: int) -> None:
    axes.barh(range(len(rows)), [ns / idle_ns for _, ns in rows], 0.72, color=BLUE)
    axes.set_yticks(range(len(rows)), [label(text, 34) for text, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_title(title, loc="left", fontsize=TEXT_POINTS)
    column_at_right(axes, [f"{pct(ns / idle_ns)}, {time_text(ns)}" for _, ns in rows])
    percent_axis(axes)
    plain_axes(axes)
