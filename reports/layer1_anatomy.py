"""What was found inside one device's window, as blocks: timeline, idle time, launches, kernels."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.findings import short_name
from layers.layer1_gpu_busy.model import Gap, IdleAnatomy, KernelRow, LaunchStats, Strip
from layers.layer1_gpu_busy.strip import WHOLE_WINDOW
from reports.drawings import IdleBars, KernelBar, KernelBars, StripDrawing
from reports.layer1_document import Anatomy
from reports.layer1_subject import Subject
from reports.markdown import shorten
from reports.model import Basis, Block, Cell, Column, Figure, Name, Paragraph, Table

TOP_KERNELS = 8
TOP_GAPS = 5
NAME_CHARACTERS = 110
"""Longer names are cut in the middle; the document of the run has them whole."""
SHORT_NAME_CHARACTERS = 55

IDLE_COLUMNS = (
    Column("by"),
    Column("idle time"),
    Column("share", numeric=True),
    Column("time", numeric=True),
)
GAP_COLUMNS = (
    *(Column("gap", numeric=True), Column("cause"), Column("place")),
    *(Column("after"), Column("before"), Column("host was in")),
)
KERNEL_COLUMNS = (
    *(Column("bar", "in the figure", numeric=True), Column("name"), Column("kind")),
    Column("n", "operations", numeric=True),
    *(Column(title, numeric=True) for title in ("of busy time", "sum", "median", "longest")),
)


def anatomy_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """Everything that was found for one device, the drawing of its timeline first."""
    if anatomy.strip is not None:
        yield _timeline(subject, anatomy.strip)
    if anatomy.idle is not None:
        yield from _idle(subject, anatomy.idle)
    if anatomy.launches is not None:
        yield from _launches(subject, anatomy.launches)
    if anatomy.kernels:
        yield from _kernels(subject, anatomy)


def _timeline(subject: Subject, strip: Strip) -> Figure:
    idle_ns, length_ns = sum(strip.idle_ns.values()), strip.end_ns - strip.start_ns
    length, gaps = time_text(length_ns), counted(strip.gaps, "gap")
    more = f" (the {len(strip.lanes)} with most)" if strip.streams > len(strip.lanes) else ""
    work = f"n = {counted(strip.operations, 'device operation')} on {counted(strip.streams, 'stream')}{more}"
    idle = f"idle {time_text(idle_ns)} = {pct(idle_ns / length_ns)} in {gaps}"
    return Figure(
        name=subject.figure_name("timeline"),
        title=f"Timeline of {shorten(strip.what, SHORT_NAME_CHARACTERS)}",
        about=f"{subject.device.scope}: {length}, {work}; {idle}",
        caption=_strip_caption(strip),
        alternative=f"Timeline of {length}, {idle}; the next figure has the causes over the whole window.",
        drawing=StripDrawing(strip),
        basis=subject.basis(strip.operations, "device operations", "busy and idle time in columns"),
    )


def _strip_caption(strip: Strip) -> str:
    """Which stretch it is, and how to read what is narrower than can be drawn."""
    of_steps = "Of all steps the one of median length, until the next begins. "
    which = "" if strip.what == WHOLE_WINDOW else of_steps
    columns = len(strip.lanes[0].busy_ns)
    width = time_text((strip.end_ns - strip.start_ns) / columns)
    read = f"Height is the busy or idle share of each {width} (1/{columns} of the width)"
    if not strip.narrow_gaps:
        return f"{which}{read}."
    narrow = f"{strip.narrow_gaps:,} of the gaps are shorter, together {time_text(strip.narrow_gaps_ns)}"
    return f"{which}{read}: {narrow}, and show as height, not one by one."


def _idle(subject: Subject, idle: IdleAnatomy) -> Iterator[Block]:
    if not idle.idle_ns:
        yield Paragraph("Idle time", "none inside the device's window")
        return
    causes = tuple(sorted(((c, ns) for c, ns in idle.by_cause_ns.items() if ns), key=lambda item: -item[1]))
    places = tuple(sorted(((p, ns) for p, ns in idle.by_place_ns.items() if ns), key=lambda item: -item[1]))
    basis = subject.basis(idle.gaps, "gaps", "time in which no stream of the device was busy")
    of_what = f"{time_text(idle.idle_ns)} idle in n = {counted(idle.gaps, 'gap')}"
    yield Figure(
        name=subject.figure_name("idle"),
        title="Where the idle time lies",
        about=f"{subject.device.scope}: {of_what} of a window of {subject.window}",
        caption="Why: what the thread that launched next was doing. Each half adds up to all of it.",
        alternative=f"Idle time: {causes[0][0]} comes first with {pct(causes[0][1] / idle.idle_ns)}.",
        drawing=IdleBars(idle.idle_ns, causes, places),
        basis=basis,
    )
    parts = [*(("cause", *cause) for cause in causes), *(("place", *place) for place in places)]
    rows = tuple((by, str(what), pct(ns / idle.idle_ns), time_text(ns)) for by, what, ns in parts)
    yield Table("Idle time by cause, and again by place", IDLE_COLUMNS, rows, basis)
    yield _gaps(idle, basis)


def _gaps(idle: IdleAnatomy, basis: Basis) -> Table:
    return Table("The longest gaps", GAP_COLUMNS, tuple(map(_gap_row, idle.largest[:TOP_GAPS])), basis)


def _gap_row(gap: Gap) -> tuple[Cell, ...]:
    def name(text: str) -> Name:
        return Name(shorten(text, SHORT_NAME_CHARACTERS))

    host = gap.host_op or gap.host_call
    where = name(host) if host else "nothing recorded"
    around = (name(short_name(gap.after_op)), name(short_name(gap.before_op)))
    return time_text(gap.end_ns - gap.start_ns), str(gap.cause), str(gap.place), *around, where


def _launches(subject: Subject, stats: LaunchStats) -> Iterator[Paragraph]:
    if stats.delay_p50_ns is None or stats.empty_queue_share is None or stats.queue_depth_p50 is None:
        return
    parts = [
        f"{pct(stats.empty_queue_share)} found the device's queue empty",
        f"median queue {stats.queue_depth_p50:,.0f}",
        f"launch to start {time_text(stats.delay_p50_ns)} at the median",
    ]
    if stats.call_p50_ns is not None:
        parts.append(f"a call {time_text(stats.call_p50_ns)}")
    if stats.rate_per_s is not None:
        parts.append(f"{stats.rate_per_s:,.0f} launches/s")
    basis = subject.basis(stats.launches, "launches", "launch calls against starts on the device")
    yield Paragraph("Launches", "; ".join(parts), basis)


def _kernels(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    device, shown = subject.device, anatomy.kernels[:TOP_KERNELS]
    basis = subject.basis(device.events, "device operations", "sums of durations by name")
    yield Figure(
        name=subject.figure_name("kernels"),
        title="Where the device's time goes",
        about=f"{device.scope}: n = {counted(device.events, 'device operation')} in {subject.window}",
        caption="Bars have the numbers of the table below. Where streams overlap, shares add up to more.",
        alternative=f"Bars of the {len(shown)} names with most device time; the table below has them.",
        drawing=KernelBars(tuple(KernelBar(k.name, k.group, k.n, k.share, k.median_ns) for k in shown)),
        basis=basis,
    )
    rows = tuple(_kernel_row(number, kernel) for number, kernel in enumerate(shown, start=1))
    yield Table("Names with most device time", KERNEL_COLUMNS, rows, basis)
    if anatomy.ncu_command:
        what = "what Nsight Compute says of the kernels on top of the table"
        yield Paragraph("Look inside", what, command=anatomy.ncu_command)


def _kernel_row(number: int, kernel: KernelRow) -> tuple[Cell, ...]:
    name = Name(shorten(kernel.name, NAME_CHARACTERS))
    times = (time_text(kernel.total_ns), time_text(kernel.median_ns), time_text(kernel.max_ns))
    return str(number), name, kernel.group, f"{kernel.n:,}", pct(kernel.share), *times
