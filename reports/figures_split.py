"""Several devices beside each other: one bar each, split by what the device was busy with."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from layers.evidence.wording import pct
from reports.figure_data import SplitBars
from reports.figure_style import (
    BLUE,
    GREEN,
    ORANGE,
    SKY,
    bar_value,
    canvas,
    label,
    percent_axis,
    plain_axes,
    thresholds,
)

KINDS = {
    "computation": (BLUE, "computation"),
    "communication": (ORANGE, "communication that no computation hides"),
    "kernels": (SKY, "kernels, communication not told apart"),
    "copies": (GREEN, "copies and sets beside no kernel"),
}
"""Colour of each kind of segment, and its name in the legend."""

BAR_INCHES = 0.3
FRAME_INCHES = 1.1
"""Axis and legend."""
NAME_CHARACTERS = 34


def draw_split(data: SplitBars, title: str, about: str) -> Figure:
    """The first device on top."""
    figure = canvas(FRAME_INCHES + len(data.devices) * BAR_INCHES, title, about)
    axes = figure.subplots()
    for place, (_, ratio, segments) in enumerate(data.devices):
        reached = 0.0
        for segment in segments:
            axes.barh(place, segment.share, 0.72, left=reached, color=KINDS[segment.kind][0])
            reached += segment.share
        bar_value(axes, place, ratio, pct(ratio))
    _axis(axes, data)
    figure.legend(handles=_keys(data), loc="outside lower left", ncols=2, frameon=False)
    return figure


def _axis(axes: Axes, data: SplitBars) -> None:
    names = [label(name, NAME_CHARACTERS, 1) for name, _, _ in data.devices]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    thresholds(axes, data.host_bound, data.device_bound)
    percent_axis(axes)
    plain_axes(axes)


def _keys(data: SplitBars) -> list[Patch]:
    """The kinds that some device has time in."""
    seen = {segment.kind for _, _, segments in data.devices for segment in segments if segment.share}
    return [Patch(color=colour, label=name) for kind, (colour, name) in KINDS.items() if kind in seen]
