"""A stretch of a timeline: what ran on each stream, and the device's idle time coloured by its cause."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from layers.evidence.wording import pct
from layers.layer1_gpu_busy.model import Cause, Strip
from reports.drawings import StripDrawing
from reports.figure_style import BLUE, CAUSE_COLOURS, GREY, canvas, plain_axes

LANE_INCHES = 0.42
FRAME_INCHES = 1.6
"""Axis and legend."""

LEGEND = "device idle, by chief cause of each gap (share of the time shown)"
PLAIN = {"frameon": False, "alignment": "left"}

UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def draw_strip(drawing: StripDrawing, title: str, about: str) -> Figure:
    """One lane a stream, and below them one for the whole device's idle time."""
    strip = drawing.strip
    unit, unit_ns = next(u for u in UNITS if strip.end_ns - strip.start_ns >= u[1] or u[1] == 1.0)
    figure = canvas(FRAME_INCHES + LANE_INCHES * (len(strip.lanes) + 1), title, about)
    axes = figure.subplots()
    _lanes(axes, strip, unit_ns)
    _gaps(axes, strip, unit_ns)
    axes.set_xlim(0, (strip.end_ns - strip.start_ns) / unit_ns)
    axes.set_xlabel(f"{unit} since the begin of what is shown")
    plain_axes(axes)
    if keys := _keys(strip):
        figure.legend(handles=keys, title=LEGEND, loc="outside lower left", ncols=2, **PLAIN)
    return figure


def _lanes(axes: Axes, strip: Strip, unit_ns: float) -> None:
    for lane, (_, busy) in enumerate(strip.lanes):
        spans = [((a - strip.start_ns) / unit_ns, (b - a) / unit_ns) for a, b in busy]
        axes.broken_barh(spans, (lane - 0.36, 0.72), facecolor=BLUE, edgecolor=BLUE, linewidth=0.4)
    names = [f"stream {stream}" for stream, _ in strip.lanes]
    axes.set_yticks(range(len(names) + 1), [*names, "device idle"])
    axes.set_ylim(len(names) + 0.55, -0.6)
    axes.axhline(len(names) - 0.5, color=GREY, linewidth=0.6)


def _gaps(axes: Axes, strip: Strip, unit_ns: float) -> None:
    lane = len(strip.lanes)
    for gap in strip.gaps:
        span = ((gap.start_ns - strip.start_ns) / unit_ns, (gap.end_ns - gap.start_ns) / unit_ns)
        axes.broken_barh([span], (lane - 0.36, 0.72), facecolor=CAUSE_COLOURS[gap.cause])


def _keys(strip: Strip) -> list[Patch]:
    """The causes that occur, with the share of the time shown that their gaps fill, the largest first."""
    length_ns = strip.end_ns - strip.start_ns
    of_cause = {cause: sum(g.end_ns - g.start_ns for g in strip.gaps if g.cause is cause) for cause in Cause}
    ordered = sorted((c for c in Cause if of_cause[c]), key=lambda c: -of_cause[c])
    return [Patch(facecolor=CAUSE_COLOURS[c], label=f"{c}: {pct(of_cause[c] / length_ns)}") for c in ordered]
