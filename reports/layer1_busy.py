"""Busy ratios of one run of Layer 1 as tables: every window of one device, several devices beside each other,
and every method beside the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import exact_pct, pct, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy, DeviceEntry, WindowEntry
from layers.layer1_gpu_busy.model import WINDOWS
from reports.layer1_busy_figure import busy_figure
from reports.layer1_document import Layer1Document
from reports.layer1_methods import method_blocks
from reports.layer1_ranks import rank_blocks
from reports.layer1_subject import Artifacts, devices_basis
from reports.model import Block, Cell, Column, Paragraph, Source, Table

DEVICES_SHOWN = 16
"""Of more the least busy ones stand in the table; `--json` has all."""

NOTHING_TO_DRAW = "no busy ratio was measured that means anything, so there is none to draw"

DEVICE_COLUMNS = (
    *(Column("device"), Column("verdict")),
    *(Column(title, numeric=True) for title in ("device-op time", "kernel time")),
    *(Column("n", "operations", numeric=True), Column("window", numeric=True), Column("from")),
)
ANATOMY_COLUMNS = (Column("exposed communication", numeric=True), Column("chief cause of idle time"))


def ratio_blocks(
    document: Layer1Document, artifacts: Artifacts, run_id: int, *, with_figure: bool = True
) -> Iterator[Block]:
    """The table of ratios, the figure, and what the ranks say of each other; void devices are not drawn."""
    traced, measured = document.traced, document.measured
    if len(traced) == 1:
        yield _one_device(traced[0], artifacts)
    elif traced:
        yield _devices(document, artifacts)
    if measured and with_figure:
        yield busy_figure(document, measured, artifacts, run_id)
    elif not document.sampled and not measured:
        yield Paragraph("No figure", NOTHING_TO_DRAW)
    for table in document.ranks if measured else ():
        yield from rank_blocks(table, traced, artifacts)
    if document.methods:
        yield from method_blocks(document, artifacts)


def least_busy(document: Layer1Document) -> DeviceEntry | None:
    """The device where most can be won; None where none has a ratio."""
    return min(document.measured, key=lambda d: d.ratio, default=None)


def _text(ratio: float | None) -> str:
    return "not measured" if ratio is None else exact_pct(ratio)


def _one_device(device: DeviceEntry, artifacts: Artifacts) -> Paragraph:
    """Every window of one device; the first is the one that the verdict is on."""
    windows = "; ".join(map(_window, device.windows))
    text = f"{device.headline}: {windows}. {device.kernels:,} of the operations are kernels"
    return Paragraph("Busy ratio", text, devices_basis([device], artifacts))


def _window(window: WindowEntry) -> str:
    name = WINDOWS.get(window.window, window.window)
    ratios = f"device-op time {_text(window.device_op_ratio)}, kernel time {_text(window.kernel_time_ratio)}"
    return f"{name} ({window.window_us / 1e3:,.2f} ms): {ratios}"


def _devices(document: Layer1Document, artifacts: Artifacts) -> Table:
    """One row per device, over its own window, with what it waited for."""
    devices = document.traced
    anatomy = {a.scope: a for a in document.anatomy}
    shown = sorted(devices, key=lambda d: d.ratio)[:DEVICES_SHOWN]
    columns = (*DEVICE_COLUMNS, *(ANATOMY_COLUMNS if anatomy else ()))
    rows = tuple(
        (*_device_row(d, artifacts), *(_anatomy_cells(d, anatomy.get(d.scope)) if anatomy else ()))
        for d in devices
        if d in shown
    )
    title = "Busy ratio by device"
    if len(shown) < len(devices):
        title = f"{title}, the {len(shown)} least busy of {len(devices)} (perfkit report --json has all)"
    return Table(title, columns, rows, devices_basis(devices, artifacts))


def _device_row(device: DeviceEntry, artifacts: Artifacts) -> tuple[Cell, ...]:
    ratios = (_text(device.device_op_ratio), _text(device.kernel_time_ratio))
    window, source = time_text(device.window_us * 1e3), Source(artifacts(device.source))
    return device.scope, device.headline, *ratios, f"{device.events:,}", window, source


def _anatomy_cells(device: DeviceEntry, anatomy: Anatomy | None) -> tuple[Cell, ...]:
    return _exposed(device, anatomy), _chief(anatomy if device.measured else None)


def _exposed(device: DeviceEntry, anatomy: Anatomy | None) -> str:
    if anatomy is None or not device.window_us:
        return "not measured"
    overlap = anatomy.overlap
    return pct(overlap.exposed_communication_ns / (device.window_us * 1e3)) if overlap else "none"


def _chief(anatomy: Anatomy | None) -> str:
    idle = anatomy.idle if anatomy is not None else None
    if idle is None:
        return "not measured"
    if not idle.idle_ns:
        return "none"
    cause, ns = idle.causes[0]
    return f"{cause} ({pct(ns / idle.idle_ns)})"
