"""A stretch of a timeline: how busy each stream was, and below them the device's idle time by cause.

Everything is drawn in columns, and the height says how much of a column is busy or idle: what is shorter than
a column is a lower bar and not left out.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from layers.evidence.wording import pct
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import Strip, StripLane, column_edges
from reports.figure_data import StripFigure
from reports.figure_style import BLUE, CAUSE_COLOURS, FAINT, canvas, label, plain_axes

LANE_INCHES = 0.42
FRAME_INCHES = 1.7
"""Axis and legend."""
HEIGHT, IDLE_HEIGHT = 0.8, 1.6
"""Of a lane whose distance to the next is 1, and of the device's idle time below them."""
LANE_CHARACTERS = 24

LEGEND = "device idle, share of this idle time by cause"
PLAIN = {"frameon": False, "alignment": "left"}

UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def draw_strip(data: StripFigure, title: str, about: str) -> Figure:
    """One lane per stream, and below them one for the whole device's idle time."""
    strip = data.strip
    length_ns = strip.end_ns - strip.start_ns
    unit, unit_ns = next(u for u in UNITS if length_ns >= u[1] or u[1] == 1.0)
    figure = canvas(FRAME_INCHES + LANE_INCHES * (len(strip.lanes) + IDLE_HEIGHT), title, about)
    axes = figure.subplots()
    _draw(axes, strip, unit_ns)
    axes.set_xlim(0, length_ns / unit_ns)
    axes.set_xlabel(f"time in {unit}")
    plain_axes(axes)
    if keys := _keys(strip):
        figure.legend(handles=keys, title=LEGEND, loc="outside lower left", ncols=2, **PLAIN)
    return figure


def _draw(axes: Axes, strip: Strip, unit_ns: float) -> None:
    columns = len(strip.lanes[0].busy_ns)
    edges_ns = np.array(column_edges(strip.start_ns, strip.end_ns, columns), np.int64) - strip.start_ns
    width_ns, edges = np.maximum(np.diff(edges_ns), 1), edges_ns / unit_ns
    for place, lane in enumerate(strip.lanes):
        bottom = place + HEIGHT
        axes.axhspan(place, bottom, color=FAINT, zorder=0)
        top = bottom - HEIGHT * np.array(lane.busy_ns) / width_ns
        axes.stairs(top, edges, baseline=bottom, fill=True, color=BLUE)
    idle_top = len(strip.lanes)
    reached = np.full(columns, idle_top + IDLE_HEIGHT)
    axes.axhspan(idle_top, idle_top + IDLE_HEIGHT, color=FAINT, zorder=0)
    for cause in _causes(strip):
        top = reached - IDLE_HEIGHT * np.array(strip.idle_columns_ns[cause]) / width_ns
        axes.stairs(top, edges, baseline=reached, fill=True, color=CAUSE_COLOURS[cause])
        reached = top
    ticks = [*(place + HEIGHT / 2 for place in range(idle_top)), idle_top + IDLE_HEIGHT / 2]
    axes.set_yticks(ticks, [*map(_name, strip.lanes), "device idle"])
    axes.set_ylim(idle_top + IDLE_HEIGHT + 0.15, -0.15)


def _name(lane: StripLane) -> str:
    return label(f"stream {lane.stream}: {', '.join(lane.kinds)}", LANE_CHARACTERS)


def _causes(strip: Strip) -> list[Cause]:
    """The causes that occur, the largest first."""
    return sorted((c for c in strip.idle_columns_ns if strip.idle_ns[c]), key=lambda c: -strip.idle_ns[c])


def _keys(strip: Strip) -> list[Patch]:
    """Each cause with its share of the idle time, which is exact."""
    total_ns = sum(strip.idle_ns.values())
    return [
        Patch(facecolor=CAUSE_COLOURS[c], label=f"{c}: {pct(strip.idle_ns[c] / total_ns)}")
        for c in _causes(strip)
    ]
