"""How all figures look, and text that is safe to draw.

Colours are Okabe and Ito's, which the colour-blind tell apart (Color Universal Design, 2008). Letters are
drawn as shapes, so a figure looks the same wherever it is opened and a name in it is never markup. matplotlib
is used without pyplot: no window, no global state, no settings of the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from layers.evidence.wording import cut_middle, limit, visible
from layers.layer1_gpu_busy.idle_model import Cause

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, GREY, PALE, FAINT = "#222222", "#767676", "#d9d9d9", "#f2f2f2"
BLUE, SKY, GREEN, ORANGE = "#0072b2", "#56b4e9", "#009e73", "#e69f00"
VERMILION, PURPLE, YELLOW = "#d55e00", "#cc79a7", "#f0e442"

CAUSE_COLOURS = {
    Cause.SYNC: VERMILION,
    Cause.COPY: PURPLE,
    Cause.LAUNCH_BOUND: ORANGE,
    Cause.HOST_WORK: YELLOW,
    Cause.NOTHING_SUBMITTED: GREEN,
    Cause.QUEUED: SKY,
    Cause.UNKNOWN: PALE,
}

WIDTH_INCHES = 9.0
"""Shown at 864 CSS pixels: a page of GitHub is about 900 wide."""

TEXT_POINTS, SMALL_POINTS, TITLE_POINTS = 10, 9, 12
LINE_CHARACTERS = 112
"""A line at TEXT_POINTS in WIDTH_INCHES, with room for wide letters."""
LINE_INCHES = 0.21
LEFT_INCHES, TOP_INCHES, GAP_INCHES = 0.08, 0.08, 0.02

FULL, ROOM = 0.86, 0.008
"""A longer bar has its number inside; the distance between them. Shares of the axis."""

PARTS = re.compile(r"[^\s_:<,/]*[\s_:<,/]*")
"""A word, or a part of a name, with what ends it."""

FONT = "DejaVu Sans"
"""matplotlib's own, so it is always there."""

STYLE: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": TEXT_POINTS,
    "text.color": BLACK,
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "xtick.labelsize": SMALL_POINTS,
    "ytick.labelsize": TEXT_POINTS,
    "svg.fonttype": "path",
    "svg.hashsalt": "perfkit",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in perfkit's style, whatever matplotlibrc says; the settings before are restored."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)
        matplotlib.rcParams.update(STYLE)
        yield


def canvas(plot_inches: float, title: str, about: str) -> Figure:
    """An empty figure for plots of this height, its title in bold with what it is about in lines below.

    The layout keeps plots, names and legend clear of each other and of the title.
    """
    from matplotlib.figure import Figure

    lines = wrap(drawable(about), LINE_CHARACTERS)
    height = plot_inches + LINE_INCHES * (len(lines) + 1) + TOP_INCHES + GAP_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), facecolor="white")
    figure.set_layout_engine("constrained", rect=(0, 0, 1, plot_inches / height))
    left = LEFT_INCHES / WIDTH_INCHES
    for number, line in enumerate([drawable(title), *lines]):
        top = 1 - (TOP_INCHES + number * LINE_INCHES) / height
        style = {"color": GREY} if number else {"fontsize": TITLE_POINTS, "fontweight": "bold"}
        figure.text(left, top, line, va="top", **style)
    return figure


def drawable(text: str, limit: int = 400) -> str:
    """Text on one line, cut to `limit`, in which what the font cannot draw stands as its escape."""
    known = _characters()
    escaped = (
        c if ord(c) in known else c.encode("unicode_escape").decode()
        for c in visible(cut_middle(text, limit))
    )
    return cut_middle("".join(escaped), limit)


def label(text: str, width: int, lines: int = 2) -> str:
    """Text for beside a bar, broken between words or parts of a name; what is too long for `lines` of `width`
    is cut in the middle.
    """
    rows = [""]
    for part in PARTS.findall(drawable(text, width * lines)):
        for piece in (part[at : at + width] for at in range(0, len(part), width)):
            if rows[-1] and len(rows[-1]) + len(piece.rstrip()) > width:
                rows.append("")
            rows[-1] += piece
    fitting = [*rows[: lines - 1], cut_middle("".join(rows[lines - 1 :]).strip(), width)]
    return "\n".join(filter(None, (row.strip() for row in fitting)))


def plain_axes(axes: Axes) -> None:
    """Quiet axes: a pale grid behind the data, no ticks on the names."""
    axes.grid(axis="x", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def percent_axis(axes: Axes) -> None:
    """Shares along the x axis."""
    axes.xaxis.set_major_formatter(lambda share, _: limit(share))


def bar_value(axes: Axes, y: float, share: float, text: str) -> None:
    """The number at the end of its bar: inside where there is no room beyond it."""
    inside = share > FULL
    x, align = (share - ROOM, "right") if inside else (share + ROOM, "left")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    axes.text(x, y, text, ha=align, va="center", fontsize=SMALL_POINTS, bbox=box)


def thresholds(axes: Axes, host_bound: float, device_bound: float) -> None:
    """The shares at which busy ratios become verdicts, named above the plot."""
    for share, text in (
        (host_bound, f"host-bound up to {limit(host_bound)}"),
        (device_bound, f"device-bound from {limit(device_bound)}"),
    ):
        axes.axvline(share, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            text,
            (share, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=SMALL_POINTS,
            color=GREY,
        )


def column_at_right(axes: Axes, texts: Sequence[str]) -> None:
    """One text per row, aligned in a column at the right of the plot, which makes room for it."""
    column = axes.secondary_yaxis("right")
    column.set_yticks(range(len(texts)), list(texts), fontsize=SMALL_POINTS)
    column.tick_params(length=0)
    column.spines["right"].set_visible(False)


@cache
def _characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(FONT)).get_charmap())
