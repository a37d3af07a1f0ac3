"""The names that take most of a device's time, as bars numbered like the rows of the table beside them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from layers.evidence.wording import pct, time_text
from layers.layer1_gpu_busy.kernel_names import short_name
from reports.figure_data import KernelBar, KernelBars
from reports.figure_style import BLUE, canvas, column_at_right, label, percent_axis, plain_axes

BAR_INCHES = 0.4
FRAME_INCHES = 0.7
"""The axis."""
NAME_CHARACTERS = 36


def draw_kernels(data: KernelBars, title: str, about: str) -> Figure:
    """The longest in sum on top."""
    kernels = data.kernels
    figure = canvas(FRAME_INCHES + len(kernels) * BAR_INCHES, title, about)
    axes = figure.subplots()
    axes.barh(range(len(kernels)), [kernel.share for kernel in kernels], 0.7, color=BLUE)
    names = [f"{number}. {name}" for number, name in enumerate(kernel_names(kernels), start=1)]
    axes.set_yticks(range(len(names)), [label(name, NAME_CHARACTERS) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("summed time over the device's busy time")
    column_at_right(axes, [_numbers(kernel) for kernel in kernels])
    percent_axis(axes)
    plain_axes(axes)
    return figure


def kernel_names(kernels: Sequence[KernelBar]) -> list[str]:
    """Short names, and whole ones where several kernels share their short name."""
    short = [short_name(kernel.name) for kernel in kernels]
    return [
        name if short.count(name) == 1 else kernel.name.removeprefix("void ")
        for name, kernel in zip(short, kernels, strict=True)
    ]


def _numbers(kernel: KernelBar) -> str:
    return f"{pct(kernel.share)}  n = {kernel.n:,}, median {time_text(kernel.median_ns)}, {kernel.group}"
