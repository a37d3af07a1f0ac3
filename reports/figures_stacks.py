"""The lines of a thread: a row a line, a panel a mode side by side, each share with its 95 % interval.

The panels answer two questions and have two denominators: of all looks, and of those that found the thread on
a CPU. A line that is long at the left and short at the right waits. Left of the dashed line a share is too
small to be sure of seeing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from layers.evidence.wording import pct
from reports.figure_data import LeafBar, LeafPanel, LeafPanels
from reports.figure_style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SMALL_POINTS,
    canvas,
    drawable,
    label,
    percent_axis,
    plain_axes,
)

ROW_INCHES, FRAME_INCHES = 0.34, 1.2
NAME_CHARACTERS = 30
TITLE_CHARACTERS, TITLE_LINES = 88, 2
"""Of the lines of all titles, which stand side by side; of one panel or two as much as half of it."""
WAITS, WORKS = ORANGE, BLUE
TEXT_ROOM = 0.3
"""Of a panel's width, for the number behind the longest interval."""
SMALLEST_AXIS = 0.02


def draw_stacks(data: LeafPanels, title: str, about: str) -> Figure:
    """The line with the largest share on top."""
    figure = canvas(FRAME_INCHES + len(data.lines) * ROW_INCHES, title, about)
    row = figure.subplots(1, len(data.panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(row, data.panels, strict=True):
        _panel(axes, panel, TITLE_CHARACTERS // max(2, len(data.panels)))
    row[0].set_yticks(range(len(data.lines)), [label(name, NAME_CHARACTERS) for name in data.lines])
    row[0].set_ylim(len(data.lines) - 0.5, -0.5)
    figure.legend(handles=list(_keys(data)), loc="outside lower left", ncols=4, frameon=False)
    return figure


def _panel(axes: Axes, panel: LeafPanel, characters: int) -> None:
    longest = max((bar.high for bar in panel.bars if bar), default=0.0)
    axes.set_xlim(0, max(longest, SMALLEST_AXIS) * (1 + TEXT_ROOM))
    for y, bar in enumerate(panel.bars):
        _bar(axes, y, bar)
    axes.axvline(panel.smallest_visible, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
    title = f"{label(panel.title, characters, TITLE_LINES)}\n{label(panel.n, characters, 1)}"
    axes.set_title(title, fontsize=SMALL_POINTS, loc="left")
    percent_axis(axes)
    axes.locator_params(axis="x", nbins=5)
    plain_axes(axes)


def _bar(axes: Axes, y: float, bar: LeafBar | None) -> None:
    """A bar from zero with its interval; of what is not known, a word."""
    if bar is None:
        axes.annotate("not kept", (0, y), (4, 0), textcoords="offset points", va="center", color=GREY)
        return
    axes.barh(y, bar.share, 0.62, color=WAITS if bar.waits else WORKS)
    below, above = max(0.0, bar.share - bar.low), max(0.0, bar.high - bar.share)
    axes.errorbar(bar.share, y, xerr=[[below], [above]], color=BLACK, linewidth=1.2, capsize=3)
    said = pct(bar.share) if bar.share else f"no hit: under {pct(bar.high)}"
    place = (max(bar.high, bar.share), y)
    axes.annotate(
        drawable(said), place, (5, 0), textcoords="offset points", va="center", fontsize=SMALL_POINTS
    )


def _keys(data: LeafPanels) -> Iterator[Artist]:
    """What is drawn, each once."""
    bars: Sequence[LeafBar] = [bar for panel in data.panels for bar in panel.bars if bar]
    for waits, color, name in ((True, WAITS, "mostly waits"), (False, WORKS, "no known wait")):
        if any(bar.waits is waits for bar in bars):
            yield Patch(color=color, label=name)
    yield Line2D([], [], color=BLACK, linewidth=1.2, label="95 % interval")
    yield Line2D([], [], color=GREY, linewidth=1, linestyle=(0, (4, 2)), label="smallest visible share")
