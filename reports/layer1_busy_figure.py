"""Busy ratios of one run as a figure: one device over every window, or what each of several was busy with."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy, DeviceEntry
from layers.layer1_gpu_busy.model import WINDOWS
from reports.figure_data import Bar, BusyBars, Segment, SplitBars
from reports.layer1_document import Layer1Document
from reports.layer1_subject import Artifacts, devices_basis
from reports.model import Figure

BARS_SHOWN = 40
"""More bars are no longer a figure; the table has all."""


def busy_figure(
    document: Layer1Document, devices: Sequence[DeviceEntry], artifacts: Artifacts, run_id: int
) -> Figure:
    one = len(devices) == 1
    ratios = [d.ratio for d in devices]
    spread = pct(ratios[0]) if one else f"{pct(min(ratios))} to {pct(max(ratios))}"
    left_out = f"; the {BARS_SHOWN} least busy ones are shown" if len(devices) > BARS_SHOWN else ""
    many = "A bar is a device's time from first to last device activity; its number is the device-op time."
    return Figure(
        name=f"run{run_id}-busy",
        title="Busy ratio by window" if one else "Busy ratio by device, and what the device was busy with",
        about=_what(devices) + left_out,
        caption="The verdict is on device-op time from first to last device activity." if one else many,
        alternative=f"Bars of busy ratios: device-op time {spread}; the numbers stand above.",
        data=_windows(document, devices[0]) if one else _split(document, devices),
        basis=devices_basis(devices, artifacts),
    )


def _windows(document: Layer1Document, device: DeviceEntry) -> BusyBars:
    """One device over every window."""
    ops = [
        Bar(w.window, f"device-op time, {WINDOWS.get(w.window, w.window)}", w.device_op_ratio)
        for w in device.windows
        if w.device_op_ratio is not None
    ]
    kernel = device.kernel_time_ratio
    kernels = [] if kernel is None else [Bar("kernel", "kernel time, first to last device activity", kernel)]
    limits = document.thresholds
    return BusyBars(((device.scope, (*ops[:1], *kernels, *ops[1:])),), limits.host_bound, limits.device_bound)


def _split(document: Layer1Document, devices: Sequence[DeviceEntry]) -> SplitBars:
    """One bar per device, in parts that add up to its ratio."""
    shown = sorted(devices, key=lambda d: d.ratio)[:BARS_SHOWN] if len(devices) > BARS_SHOWN else devices
    anatomy = {a.scope: a for a in document.anatomy}
    bars = tuple((d.scope, d.ratio, _segments(d, anatomy.get(d.scope))) for d in shown)
    return SplitBars(bars, document.thresholds.host_bound, document.thresholds.device_bound)


def _segments(device: DeviceEntry, anatomy: Anatomy | None) -> tuple[Segment, ...]:
    """Kernels told apart where there was an anatomy, and what remains: copies and sets beside no kernel."""
    ratio, window_ns = device.ratio, device.window_us * 1e3
    overlap = anatomy.overlap if anatomy is not None else None
    if overlap is not None:
        exposed = overlap.exposed_communication_ns / window_ns
        kernels = [("computation", overlap.computation_ns / window_ns), ("communication", exposed)]
    else:
        kernels = [("kernels" if anatomy is None else "computation", device.kernel_time_ratio or 0.0)]
    rest = max(ratio - sum(share for _, share in kernels), 0.0)
    return tuple(Segment(kind, share) for kind, share in [*kernels, ("copies", rest)])


def _what(devices: Sequence[DeviceEntry]) -> str:
    if len(devices) == 1:
        only = devices[0]
        window = time_text(only.window_us * 1e3)
        return f"{only.scope}: n = {counted(only.events, 'device operation')} in {window}"
    events = [d.events for d in devices]
    windows = [d.window_us * 1e3 for d in devices]
    many = f"{min(events):,} to {max(events):,} device operations each"
    return f"n = {len(devices)} devices, {many}, in {time_text(min(windows))} to {time_text(max(windows))}"
