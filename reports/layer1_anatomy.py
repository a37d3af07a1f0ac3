"""What was found inside one device's window: idle time, steps, launches, communication, kernels."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import counted, cut_middle, pct, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy
from layers.layer1_gpu_busy.model import KernelRow, LaunchStats, Overlap
from layers.layer1_gpu_busy.thresholds import Word
from reports.figure_data import KernelBar, KernelBars
from reports.layer1_details import detail_blocks
from reports.layer1_idle import idle_blocks, idle_figure, longest_gaps, timeline
from reports.layer1_steps import steps_table
from reports.layer1_subject import Subject
from reports.model import Block, Cell, Column, Figure, Name, Paragraph, Table

TOP_KERNELS = 6
NAME_CHARACTERS = 110
"""Longer names are cut in the middle; the document of the run has them whole."""

KERNEL_COLUMNS = (
    *(Column("bar", "in the figure", numeric=True), Column("name"), Column("kind")),
    Column("n", "operations", numeric=True),
    *(Column(title, numeric=True) for title in ("of busy time", "sum", "median", "longest")),
)


def anatomy_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """Everything that was found for one device, its idle time first."""
    yield from idle_blocks(subject, anatomy)
    if steps := steps_table(subject, anatomy):
        yield steps
    if anatomy.idle is not None and anatomy.idle.largest:
        yield longest_gaps(subject, anatomy.idle)
    if anatomy.launches is not None:
        yield from _launches(subject, anatomy.launches)
    if anatomy.overlap is not None:
        yield _communication(subject, anatomy.overlap)
    yield from detail_blocks(subject, anatomy)
    if anatomy.kernels:
        yield from _kernels(subject, anatomy)


def short_anatomy_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """What tells most of a run that is not the one to be read now."""
    if anatomy.strip is not None:
        yield timeline(subject, anatomy.strip, anatomy.steps)
    if anatomy.idle is not None and anatomy.idle.idle_ns:
        yield idle_figure(subject, anatomy.idle)
    if steps := steps_table(subject, anatomy):
        yield steps
    if anatomy.overlap is not None:
        yield _communication(subject, anatomy.overlap)
    if anatomy.kernels:
        yield _kernel_figure(subject, anatomy.kernels[:TOP_KERNELS], "")


def _launches(subject: Subject, stats: LaunchStats) -> Iterator[Paragraph]:
    """Nothing of documents that do not say of how many launches their delays are: perfkit once did not."""
    if not stats.tied_launches:
        return
    if stats.delay_p50_ns is None or stats.empty_queue_share is None or stats.queue_depth_p50 is None:
        return
    parts = [
        f"{pct(stats.empty_queue_share)} found the device's queue empty",
        f"median queue {stats.queue_depth_p50:,.0f}",
        f"launch to start {time_text(stats.delay_p50_ns)} at the median",
    ]
    of_all = "" if stats.tied_launches == stats.launches else f" (n = {stats.launches:,})"
    if stats.call_p50_ns is not None:
        parts.append(f"a call {time_text(stats.call_p50_ns)}{of_all}")
    if stats.rate_per_s is not None:
        parts.append(f"{stats.rate_per_s:,.0f} launches/s{of_all}")
    basis = subject.basis(stats.tied_launches, "launches", "launch calls against starts on the device")
    yield Paragraph("Launches", "; ".join(parts), basis)


def _communication(subject: Subject, overlap: Overlap) -> Paragraph:
    exposed_ns = overlap.exposed_communication_ns
    share = f" = {pct(exposed_ns / subject.window_ns)} of the window" if subject.window_ns else ""
    exposed = f"no computation hides {time_text(exposed_ns)}{share}"
    text = f"{time_text(overlap.communication_ns)}, of which {exposed}"
    method = "union of communication kernels, told by name, and the part of it outside other kernels"
    basis = subject.basis(overlap.communication_ops, "communication kernels", method)
    return Paragraph("Communication", text, basis)


def _kernels(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    shown = anatomy.kernels[:TOP_KERNELS]
    yield _kernel_figure(subject, shown, "Bars have the numbers of the table below. ")
    rows = tuple(_kernel_row(number, kernel) for number, kernel in enumerate(shown, start=1))
    basis = subject.basis(subject.device.events, "device operations", "sums of durations by name")
    yield Table("Names with most device time", KERNEL_COLUMNS, rows, basis)
    if anatomy.ncu_command and subject.device.word == Word.DEVICE_BOUND:
        what = "what Nsight Compute says of the kernels on top, communication left out"
        yield Paragraph("Look inside", what, command=anatomy.ncu_command)


def _kernel_figure(subject: Subject, shown: tuple[KernelRow, ...], read: str) -> Figure:
    device = subject.device
    return Figure(
        name=subject.figure_name("kernels"),
        title="Where the device's time goes",
        about=f"{device.scope}: n = {counted(device.events, 'device operation')} in {subject.window}",
        caption=f"{read}Where streams overlap, shares add up to more than all.",
        alternative=f"Bars of the {len(shown)} names with most device time.",
        data=KernelBars(tuple(KernelBar(k.name, k.group, k.n, k.share, k.median_ns) for k in shown)),
        basis=subject.basis(device.events, "device operations", "sums of durations by name"),
    )


def _kernel_row(number: int, kernel: KernelRow) -> tuple[Cell, ...]:
    name = Name(cut_middle(kernel.name.removeprefix("void "), NAME_CHARACTERS))
    times = (time_text(kernel.total_ns), time_text(kernel.median_ns), time_text(kernel.max_ns))
    return str(number), name, kernel.group, f"{kernel.n:,}", pct(kernel.share), *times
