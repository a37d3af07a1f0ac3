"""Busy ratios as bars, grouped by device, against the thresholds that make them a verdict."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from layers.evidence.wording import exact_pct
from reports.figure_data import BusyBars
from reports.figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    bar_value,
    canvas,
    drawable,
    label,
    percent_axis,
    plain_axes,
    thresholds,
)

COLOURS = {"device": BLUE, "kernel": SKY, "steps": GREEN, "recorded": ORANGE}
"""By the kind of bar; another kind is grey."""

BAR_INCHES = 0.2
GAP_INCHES = 0.16
FRAME_INCHES = 1.15
"""Axis and legend."""


def draw_busy(data: BusyBars, title: str, about: str) -> Figure:
    """One bar per measure, one group per device, the first device on top."""
    bars = sum(len(bars) for _, bars in data.devices)
    height = FRAME_INCHES + bars * BAR_INCHES + len(data.devices) * GAP_INCHES
    figure = canvas(height, title, about)
    axes = figure.subplots()
    _bars(axes, data)
    thresholds(axes, data.host_bound, data.device_bound)
    axes.set_xlim(0, 1)
    percent_axis(axes)
    plain_axes(axes)
    figure.legend(handles=_keys(data), loc="outside lower left", ncols=2, frameon=False)
    return figure


def _bars(axes: Axes, data: BusyBars) -> None:
    """Bars in inches of height, so that they look alike however many there are."""
    y, ticks = 0.0, []
    for _, bars in data.devices:
        ticks.append(y + (len(bars) - 1) * BAR_INCHES / 2)
        for bar in bars:
            axes.barh(y, bar.share, BAR_INCHES * 0.84, color=COLOURS.get(bar.kind, GREY))
            bar_value(axes, y, bar.share, exact_pct(bar.share))
            y += BAR_INCHES
        y += GAP_INCHES
    axes.set_yticks(ticks, [label(name, 26) for name, _ in data.devices])
    axes.set_ylim(y - GAP_INCHES - BAR_INCHES / 2, -BAR_INCHES)


def _keys(data: BusyBars) -> list[Patch]:
    """Each kind of bar once."""
    kinds = {bar.kind: bar.measure for _, bars in data.devices for bar in bars}
    return [Patch(color=COLOURS.get(kind, GREY), label=drawable(said)) for kind, said in kinds.items()]
