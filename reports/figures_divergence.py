"""Where answers part: how many of them, by the share of the answer that is the same before."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figure_data import Divergences
from reports.figure_style import VERMILION, canvas, percent_axis, plain_axes

BINS = 20
PLOT_INCHES = 2.4


def draw_divergences(data: Divergences, title: str, about: str) -> Figure:
    """One bar for every twentieth of an answer."""
    figure = canvas(PLOT_INCHES, title, about)
    axes = figure.subplots()
    axes.hist(data.places, BINS, range=(0.0, 1.0), color=VERMILION, rwidth=0.9)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the answer that is the same before")
    axes.set_ylabel("samples")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    percent_axis(axes)
    plain_axes(axes)
    return figure
