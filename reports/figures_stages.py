"""Where the time of a request goes: one stacked bar a run, waits first, the limit of waiting dashed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports.figure_data import StageBars
from reports.figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    SKY,
    VERMILION,
    canvas,
    label,
    percent_axis,
    plain_axes,
)

KINDS = {
    "queue": (VERMILION, "waits"),
    "hop": (ORANGE, "hops"),
    "intended": (PALE, "waits as intended"),
    "build": (SKY, "build"),
    "first_forward": (GREEN, "first forward"),
    "decode": (BLUE, "decode"),
    "service": ("#44777a", "service"),
    "unaccounted": (GREY, "unaccounted"),
}
"""Colour of each kind of time, and its name in the legend."""
BAR_INCHES, FRAME_INCHES = 0.3, 1.3
NAME_CHARACTERS = 34


def draw_stages(data: StageBars, title: str, about: str) -> Figure:
    """The least load on top."""
    figure = canvas(FRAME_INCHES + len(data.runs) * BAR_INCHES, title, about)
    axes = figure.subplots()
    for place, (_, segments) in enumerate(data.runs):
        reached = 0.0
        for kind, share in segments:
            axes.barh(place, share, 0.72, left=reached, color=KINDS[kind][0])
            reached += share
    _axis(axes, data)
    used = {kind for _, segments in data.runs for kind, _ in segments}
    keys = [Patch(color=color, label=name) for kind, (color, name) in KINDS.items() if kind in used]
    figure.legend(handles=keys, loc="outside lower left", ncols=4, frameon=False)
    return figure


def _axis(axes: Axes, data: StageBars) -> None:
    names = [label(name, NAME_CHARACTERS, 1) for name, _ in data.runs]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.axvline(data.queue_limit, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
    percent_axis(axes)
    plain_axes(axes)
