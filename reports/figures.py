"""Figures of a report as SVG files: one function per kind of data, in `figures_<kind>.py`.

The same drawing gives the same bytes. matplotlib is imported where it is used, so that a report without
figures does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from reports.figure_data import (
    AbLatency,
    AbPairs,
    AbTimeline,
    BusyBars,
    Divergences,
    IdleBars,
    KeptPicture,
    KernelBars,
    LeafPanels,
    SplitBars,
    StageBars,
    StripFigure,
    SweepCurves,
)
from reports.figure_style import styled
from reports.figures_kept import unwritable, write_kept
from reports.html_figures import inside_page
from reports.model import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Draw every figure into the folder as NAME.svg; StoreError where that cannot be written."""
    return [write_figure(figure, folder) for figure in figures]


def figure_reader(beside: Mapping[str, str], written: Iterable[Path]) -> Callable[[str], str]:
    """Each written figure, as a part of a page, by the path that a report names (`beside`)."""
    drawn = {beside[path.stem]: (f"f{number}-", path) for number, path in enumerate(written, start=1)}

    def read(path: str) -> str:
        if unquote(path) not in drawn:
            return ""
        prefix, file = drawn[unquote(path)]
        return inside_page(file.read_text("utf-8"), prefix)

    return read


def write_figure(figure: Figure, folder: Path, suffix: str = ".svg") -> Path:
    """Draw one figure; matplotlib takes the format from the suffix. What was kept as SVG stays that."""
    if isinstance(figure.data, KeptPicture):
        return write_kept(figure.data, folder.parent, folder / f"{figure.name}.svg")
    path = folder / f"{figure.name}{suffix}"
    metadata = {"Date": None} if suffix == ".svg" else None
    try:
        with styled():
            draw(figure).savefig(path, metadata=metadata)
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas of its own; call it inside `styled`."""
    from reports.figures_ab import draw_ab_latency, draw_ab_pairs, draw_ab_timeline
    from reports.figures_busy import draw_busy
    from reports.figures_divergence import draw_divergences
    from reports.figures_idle import draw_idle
    from reports.figures_kernels import draw_kernels
    from reports.figures_split import draw_split
    from reports.figures_stacks import draw_stacks
    from reports.figures_stages import draw_stages
    from reports.figures_strip import draw_strip
    from reports.figures_sweep import draw_sweep

    match figure.data:
        case BusyBars():
            return draw_busy(figure.data, figure.title, figure.about)
        case SplitBars():
            return draw_split(figure.data, figure.title, figure.about)
        case StripFigure():
            return draw_strip(figure.data, figure.title, figure.about)
        case IdleBars():
            return draw_idle(figure.data, figure.title, figure.about)
        case KernelBars():
            return draw_kernels(figure.data, figure.title, figure.about)
        case SweepCurves():
            return draw_sweep(figure.data, figure.title, figure.about)
        case StageBars():
            return draw_stages(figure.data, figure.title, figure.about)
        case LeafPanels():
            return draw_stacks(figure.data, figure.title, figure.about)
        case KeptPicture():
            raise AssertionError("a kept picture is copied, not drawn")
        case AbPairs():
            return draw_ab_pairs(figure.data, figure.title, figure.about)
        case AbLatency():
            return draw_ab_latency(figure.data, figure.title, figure.about)
        case AbTimeline():
            return draw_ab_timeline(figure.data, figure.title, figure.about)
        case Divergences():
            return draw_divergences(figure.data, figure.title, figure.about)
