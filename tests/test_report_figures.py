"""Figures of a report: no text cut or over another, nothing in them that acts, the same bytes each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from layers.layer1_gpu_busy.idle_model import Cause, Place
from layers.layer1_gpu_busy.kernel_names import short_name
from layers.layer1_gpu_busy.model import Strip, StripLane
from parsers.errors import StoreError
from reports.figure_data import (
    Bar,
    BusyBars,
    FigureData,
    IdleBars,
    KernelBar,
    KernelBars,
    LeafBar,
    LeafPanel,
    LeafPanels,
    Segment,
    SplitBars,
    StripFigure,
    SweepCurves,
    SweepPanel,
    SweepSeries,
)
from reports.figure_style import drawable, label, styled
from reports.figures import draw, write_figure
from reports.figures_kernels import kernel_names
from reports.figures_sweep import named_loads
from reports.model import Basis, Figure
from tests.report_builders import HOSTILE_NAMES, host_bound_trace, record, report_of

TOUCHING_PIXELS = 1.0

LONG_SCOPE = "a_rather_long_name_of_a_trace_file_" * 6 + ".json.gz, device 0"


def figure_of(
    data: FigureData, about: str = "rank 0, device 0: n = 61 device operations in 3.91 ms"
) -> Figure:
    basis = Basis(61, "device operations", "made up", ())
    return Figure("figure", "Where the time goes", about, "", "", data, basis)


def texts_of(figure: Figure) -> tuple[dict[str, Bbox], Bbox]:
    """Where each text that is drawn lies, and the canvas, in pixels."""
    drawn: dict[int, Text] = {}
    real_draw = Text.draw

    def recording_draw(text: Text, renderer: Any) -> None:
        drawn[id(text)] = text
        real_draw(text, renderer)

    with styled(), patch.object(Text, "draw", recording_draw):
        canvas = FigureCanvasAgg(draw(figure))
        canvas.draw()  # type: ignore[no-untyped-call]
        shown = [text for text in drawn.values() if text.get_visible() and text.get_text().strip()]
        boxes = {f"{i} {t.get_text()}": Text.get_window_extent(t) for i, t in enumerate(shown)}
    width, height = canvas.get_width_height()
    return boxes, Bbox.from_bounds(0, 0, width, height)


def assert_legible(figure: Figure) -> None:
    boxes, canvas = texts_of(figure)
    for text, box in boxes.items():
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1 + 1, f"cut: {text}"
        assert canvas.y0 <= box.y0 and box.y1 <= canvas.y1 + 1, f"cut: {text}"
    for (a, first), (b, second) in combinations(boxes.items(), 2):
        common = Bbox.intersection(first, second)
        overlap = min(common.width, common.height) if common else 0.0
        assert overlap <= TOUCHING_PIXELS, f"{a!r} lies over {b!r}"


def busy(*devices: str, ratio: float = 0.5) -> BusyBars:
    bars = (
        Bar("device", "device-op time, first to last device activity", ratio),
        Bar("kernel", "kernel time, first to last device activity", ratio * 0.99),
        Bar("steps", "device-op time, profiled steps, as the host saw them", ratio * 0.8),
        Bar("recorded", "device-op time, all that was recorded", ratio * 0.7),
    )
    return BusyBars(tuple((name, bars) for name in devices), 0.6, 0.9)


def split(*devices: str, shares: tuple[float, float, float] = (0.1, 0.3, 0.05)) -> SplitBars:
    """Devices that compute, communicate and copy for these shares of their time."""
    segments = tuple(map(Segment, ("computation", "communication", "copies"), shares))
    return SplitBars(tuple((name, sum(shares), segments) for name in devices), 0.6, 0.9)


def strip(lanes: int, length_ns: int) -> StripFigure:
    """A stretch in 100 columns whose second half is idle, for every cause alike."""
    part_ns = length_ns // (100 * len(Cause))
    busy_ns = (length_ns // 100,) * 50 + (0,) * 50
    kinds = ("communication", "computation", "graph replays")
    return StripFigure(
        Strip(
            what="step",
            start_ns=0,
            end_ns=length_ns,
            operations=1_234,
            streams=lanes,
            lanes=tuple(StripLane(7 + lane, kinds[: lane + 1], busy_ns) for lane in range(lanes)),
            idle_ns=dict.fromkeys(Cause, 50 * part_ns),
            idle_columns_ns=dict.fromkeys(Cause, (0,) * 50 + (part_ns,) * 50),
            gaps=1,
            narrow_gaps=0,
            narrow_gaps_ns=0,
        )
    )


def kernels(*names: str) -> KernelBars:
    rows = [
        KernelBar(name, "normalisation", 1_234_567, 0.9 / (k + 1), 123_456.0) for k, name in enumerate(names)
    ]
    return KernelBars(tuple(rows))


IDLE = IdleBars(
    1_000, tuple((cause, 100 + k) for k, cause in enumerate(Cause)), tuple((p, 200) for p in Place)
)


def sweep(*loads: float, extra: Sequence[SweepSeries] = (), mark: str = "plateau start") -> SweepCurves:
    """Throughput that bends, a latency of decades, a utilisation and an accuracy."""
    rate = SweepSeries("this server", "main", tuple((n, 10 * n / (1 + n / 8), 0.2 * n) for n in loads))
    p50 = SweepSeries("p50", "main", tuple((n, 20 + n * n, None) for n in loads))
    p99 = SweepSeries("p99", "tail", tuple((n, 300.0 * n, None) for n in loads))
    busy_share = SweepSeries("", "main", tuple((n, 97.0, None) for n in loads))
    error_rate = SweepSeries("", "main", tuple((n, 0.0122, None) for n in loads))
    panels = (
        SweepPanel("throughput, requests a second", (rate, *extra)),
        SweepPanel("end to end, ms", (p50, p99), logarithmic=True),
        SweepPanel("GPU utilisation, % (tells nothing: see below)", (busy_share,), top=105.0),
        SweepPanel("accuracy, wer", (error_rate,)),
    )
    return SweepCurves("in flight", loads, panels, ((loads[-1], mark),))


def leaves(*names: str, panels: int = 2) -> LeafPanels:
    """Lines of falling shares; the last has no hit, and of the one before nothing is known."""
    bars = [LeafBar(0.6 / k, 0.4 / k, 0.9 / k, waits=k == 1) for k in range(1, len(names) - 1)]
    title, n = "looks that found it on a CPU (no --idle)", "n = 123,456,789 ticks, 12 captures"
    panel = LeafPanel(title, n, (*bars, None, LeafBar(0.0, 0.0, 0.004, False)), 0.004)
    return LeafPanels(names, (panel,) * panels)


CONTROL = SweepSeries("control", "control", ((1, 20.0, 1.0), (8, 90.0, None)))
VOID = SweepSeries("void repeat", "void", ((8, 3.0, None),))

FIGURES: dict[str, FigureData] = {
    "one device": busy("rank 0, device 0"),
    "long scope": busy(LONG_SCOPE),
    "hostile scope": busy(HOSTILE_NAMES[2] + ", device 0"),
    "eight devices": split(*(f"rank {rank}, device {rank}" for rank in range(8))),
    "devices with long names": split(LONG_SCOPE, HOSTILE_NAMES[2]),
    "devices that are always busy": split("gpu 0", "gpu 1", shares=(0.5, 0.4, 0.1)),
    "devices of which kernels alone are known": SplitBars(
        (("gpu 0", 0.5, (Segment("kernels", 0.5), Segment("copies", 0.0))),), 0.6, 0.9
    ),
    "busy at 100 %": busy("device 0", ratio=1.0),
    "busy at 0 %": busy("device 0", ratio=0.0),
    "forty devices": split(*(f"rank {rank}" for rank in range(40))),
    "one stream": strip(1, 3_907_825),
    "eight streams": strip(8, 76_000_000),
    "a strip of seconds": strip(2, 3_000_000_000),
    "a strip of nanoseconds": strip(2, 900),
    "idle by every cause and place": IDLE,
    "idle by one cause": IdleBars(500, ((Cause.SYNC, 500),), ((Place.UNPLACED, 500),)),
    "hostile kernels": kernels(*HOSTILE_NAMES[:8]),
    "one kernel": kernels("gemm"),
    "a sweep with loads side by side": sweep(1, 2, 4, 8, 10, 16, 32, 64, 80, 128),
    "a sweep of two rates": sweep(0.5, 2.5),
    "a sweep with control and void": sweep(1, 8, extra=(CONTROL, VOID)),
    "lines of a thread in one mode": leaves("a.py:1 (f)", "b.py:2 (g)", "c.py:3 (h)", panels=1),
    "lines of a thread in three modes": leaves("a.py:1 (f)", "b.py:2 (g)", "c.py:3 (h)", panels=3),
    "lines with hostile names": leaves(*HOSTILE_NAMES[:8], LONG_SCOPE),
    "long kernels": kernels(*("at_native_vectorized_" * 30 + str(k) for k in range(8))),
}


@pytest.mark.parametrize("data", FIGURES.values(), ids=FIGURES)
def test_no_text_is_cut_or_lies_over_another(data: FigureData) -> None:
    assert_legible(figure_of(data))


def test_a_long_title_wraps_and_keeps_clear_of_the_plot() -> None:
    assert_legible(figure_of(busy("device 0"), about=f"{LONG_SCOPE}: n = 61 device operations in 3.91 ms"))


@settings(max_examples=8, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=8), st.text())
def test_any_names_are_drawn_without_cut_or_overlap(names: list[str], scope: str) -> None:
    assert_legible(figure_of(kernels(*names), about=f"{scope}: n = 3"))
    assert_legible(figure_of(busy(scope)))


@pytest.mark.parametrize("data", FIGURES.values(), ids=FIGURES)
def test_an_svg_is_well_formed_holds_shapes_alone_and_is_the_same_each_time(
    data: FigureData, tmp_path: Path
) -> None:
    written = write_figure(figure_of(data), tmp_path).read_bytes()
    tags = {re.sub(r"\{.*\}", "", element.tag) for element in ElementTree.fromstring(written).iter()}
    assert not tags & {"script", "text", "a", "image", "foreignObject"}
    assert write_figure(figure_of(data), tmp_path).read_bytes() == written


def test_figures_do_not_follow_the_users_settings_and_leave_them_alone(tmp_path: Path) -> None:
    import matplotlib

    plain = write_figure(figure_of(IDLE), tmp_path).read_bytes()
    with matplotlib.rc_context({"font.size": 40, "text.usetex": True, "svg.fonttype": "none"}):
        assert write_figure(figure_of(IDLE), tmp_path).read_bytes() == plain
        assert matplotlib.rcParams["font.size"] == 40


def test_a_name_breaks_between_its_parts_and_is_cut_in_its_middle() -> None:
    assert label("ncclKernel_SendRecv_RING_SIMPLE", 20) == "ncclKernel_SendRecv_\nRING_SIMPLE"
    assert label("at::native::reduce_kernel<MeanOps>", 24) == "at::native::reduce_\nkernel<MeanOps>"
    assert label("x" * 50, 20) == f"{'x' * 20}\n{'x' * 6}…{'x' * 13}"
    assert label("a name", 20, 1) == label("a name", 20, 2) == "a name"


@given(st.text(), st.integers(3, 30), st.integers(1, 3))
def test_a_label_keeps_to_its_lines_and_width(text: str, width: int, lines: int) -> None:
    rows = label(text, width, lines).split("\n")
    assert len(rows) <= lines and max(map(len, rows)) <= width


def test_kernels_that_share_a_short_name_are_told_apart() -> None:
    names = ["void f<int>(int)", "void f<long>(long)", "void g<int>(int)"]
    told = kernel_names([KernelBar(name, "gemm", 1, 0.1, 1.0) for name in names])
    assert len(set(told)) == 3 and told[2] == short_name(names[2])


def test_what_the_font_cannot_draw_stands_as_its_escape() -> None:
    assert drawable("名 ok µs") == "\\u540d ok µs"
    assert len(drawable("名" * 10_000, 50)) == 50


def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--no-figures"):
        write_figure(figure_of(IDLE), tmp_path / "missing")


def test_the_figures_of_a_recorded_trace_are_legible(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace(HOSTILE_NAMES).write(tmp_path / "t.json"))
    figures = report_of(tmp_path / "i").figures
    assert len(figures) == 4
    for figure in figures:
        assert_legible(figure)


def test_ticks_name_powers_of_two_first_and_what_has_room_beside_them() -> None:
    assert named_loads([1, 2, 4, 8, 10, 16, 32, 64, 80, 128]) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert named_loads([3, 5, 6, 12, 100]) == [3, 5, 12, 100]
