"""Busy ratios of one run of Layer 1 as blocks of a report: by device and window, and by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from layers.evidence.measurement import Artifact
from layers.evidence.wording import counted, exact_pct, pct, time_text
from layers.layer1_gpu_busy.ranks import RankRow, RankTable, straggler_text
from reports.drawings import Bar, BusyBars
from reports.layer1_document import DeviceEntry, Layer1Document, WindowEntry
from reports.model import Basis, Block, Cell, Column, Figure, Paragraph, Source, Table

METHOD = "chrome trace: union of intervals over the window"

GROUPED_UP_TO = 8
"""Devices that a figure shows with every window; of more it shows one bar each."""
BARS_SHOWN = 40
"""More bars are no longer a figure; the table has all."""

NOTHING_TO_DRAW = "no busy ratio was measured that means anything, so there is none to draw"

WINDOW_NAMES = {
    "device": "first to last device activity",
    "steps": "profiled steps, as the host saw them",
    "recorded": "all that was recorded",
}

SAMPLED_COLUMNS = (
    *(Column("method"), Column("device")),
    *(Column(title, numeric=True) for title in ("NVML util", "SM active", "tensor active")),
    *(Column("n", "samples", numeric=True), Column("from")),
)

Artifacts = Callable[[str], Artifact]
"""The artifact of a path as the document writes it."""


def ratio_blocks(document: Layer1Document, artifacts: Artifacts, run_id: int) -> Iterator[Block]:
    """The table of ratios, the figure, and what the ranks say of each other; void devices are not drawn."""
    traced, measured = document.traced, document.measured
    if traced:
        yield _table(traced, artifacts)
    if measured:
        yield _figure(document, measured, artifacts, run_id)
    elif not document.sampled:
        yield Paragraph("No figure", NOTHING_TO_DRAW)
    for table in document.ranks:
        yield from _rank_blocks(table, traced, artifacts)
    if document.sampled:
        yield _sampled(document.sampled, artifacts)


def least_busy(document: Layer1Document) -> DeviceEntry | None:
    """The device where most can be won; None where none has a ratio."""
    return min(document.measured, key=lambda d: d.device_op_ratio or 0.0, default=None)


def _table(devices: Sequence[DeviceEntry], artifacts: Artifacts) -> Table:
    columns = (
        *(Column("device"), Column("verdict"), Column("window")),
        *(Column("device-op time", numeric=True), Column("kernel time", numeric=True)),
        *(Column("n, device operations", numeric=True), Column("window length", numeric=True)),
        Column("from"),
    )
    rows = tuple(row for device in devices for row in _rows(device, artifacts))
    return Table("Busy ratio by device and window", columns, rows, _basis(devices, artifacts))


def _rows(device: DeviceEntry, artifacts: Artifacts) -> Iterator[tuple[Cell, ...]]:
    """One row a window; the first is the one that the verdict is on."""
    for number, window in enumerate(device.windows):
        whose = ("", "") if number else (device.scope, device.word)
        name = WINDOW_NAMES.get(window.window, window.window)
        n, length = f"{device.events:,} ({device.kernels:,} kernels)", f"{window.window_us / 1e3:,.2f} ms"
        yield (*whose, name, *_ratios(window), n, length, Source(artifacts(device.source)))


def _ratios(window: WindowEntry) -> tuple[str, str]:
    def text(ratio: float | None) -> str:
        return "not measured" if ratio is None else exact_pct(ratio)

    return text(window.device_op_ratio), text(window.kernel_time_ratio)


def _figure(
    document: Layer1Document, devices: Sequence[DeviceEntry], artifacts: Artifacts, run_id: int
) -> Figure:
    grouped = len(devices) <= GROUPED_UP_TO
    shown = devices if grouped else sorted(devices, key=lambda d: d.device_op_ratio or 0.0)[:BARS_SHOWN]
    bars = tuple((d.scope, _bars(d) if grouped else _bars(d)[:1]) for d in shown)
    ratios = [d.device_op_ratio or 0.0 for d in devices]
    left_out = f"; the {len(shown)} least busy ones are shown" if len(shown) < len(devices) else ""
    spread = pct(ratios[0]) if len(devices) == 1 else f"{pct(min(ratios))} to {pct(max(ratios))}"
    return Figure(
        name=f"run{run_id}-busy",
        title="Busy ratio by window" if grouped else "Busy ratio by device",
        about=_what(devices) + left_out,
        caption="The verdict is on device-op time from first to last device activity.",
        alternative=f"Bars of busy ratios: device-op time {spread}; the table above has every number.",
        drawing=BusyBars(bars, document.thresholds.host_bound, document.thresholds.device_bound),
        basis=_basis(devices, artifacts),
    )


def _bars(device: DeviceEntry) -> tuple[Bar, ...]:
    ops = [
        Bar(w.window, f"device-op time, {WINDOW_NAMES.get(w.window, w.window)}", w.device_op_ratio)
        for w in device.windows
        if w.device_op_ratio is not None
    ]
    kernel = device.kernel_time_ratio
    kernels = [] if kernel is None else [Bar("kernel", "kernel time, first to last device activity", kernel)]
    return (*ops[:1], *kernels, *ops[1:])


def _what(devices: Sequence[DeviceEntry]) -> str:
    if len(devices) == 1:
        only = devices[0]
        window = time_text(only.window_us * 1e3)
        return f"{only.scope}: n = {counted(only.events, 'device operation')} in {window}"
    events = [d.events for d in devices]
    windows = [d.window_us * 1e3 for d in devices]
    many = f"{min(events):,} to {max(events):,} device operations each"
    return f"n = {len(devices)} devices, {many}, in {time_text(min(windows))} to {time_text(max(windows))}"


def _basis(devices: Sequence[DeviceEntry], artifacts: Artifacts) -> Basis:
    files = tuple(dict.fromkeys(artifacts(d.source) for d in devices))
    if len(devices) == 1:
        return Basis(devices[0].events, "device operations", METHOD, files)
    return Basis(len(devices), "devices", METHOD, files)


def _sampled(devices: Sequence[DeviceEntry], artifacts: Artifacts) -> Table:
    """What other methods say: each answers a question of its own."""
    rows = tuple(_sampled_row(device, artifacts) for device in devices)
    files = tuple(dict.fromkeys(artifacts(d.source) for d in devices))
    basis = Basis(sum(d.events for d in devices), "samples", "sampled series: means", files)
    return Table("Other methods, beside it", SAMPLED_COLUMNS, rows, basis)


def _sampled_row(device: DeviceEntry, artifacts: Artifacts) -> tuple[Cell, ...]:
    def text(ratio: float | None) -> str:
        return "not measured" if ratio is None else exact_pct(ratio)

    util = None if device.nvml_util_pct is None else device.nvml_util_pct / 100
    ratios = (text(util), text(device.sm_active_ratio), text(device.tensor_active_ratio))
    name = device.scope or f"device {device.device}"
    return device.method, name, *ratios, f"{device.events:,}", Source(artifacts(device.source))


def _rank_blocks(ranks: RankTable, devices: Sequence[DeviceEntry], artifacts: Artifacts) -> list[Block]:
    sources = {row.source for row in ranks.rows}
    basis = _basis([device for device in devices if device.source in sources], artifacts)
    columns = (
        Column("rank"),
        *(Column(title, numeric=True) for title in ("device-op time", "communication", "computation")),
        *(Column(title, numeric=True) for title in ("waited", "caused waits of")),
        Column("last to join", "collectives", numeric=True),
    )
    rows = tuple(_rank_row(row) for row in ranks.rows)
    return [
        Table(f"Ranks of {ranks.name or 'one run'}", columns, rows, basis),
        Paragraph("Straggler", straggler_text(ranks), basis),
    ]


def _rank_row(row: RankRow) -> tuple[str, ...]:
    def text(ns: float | None) -> str:
        return "not measured" if ns is None else time_text(ns)

    return (
        f"rank {row.rank}, device {row.device}",
        "not measured" if row.device_op_ratio is None else exact_pct(row.device_op_ratio),
        *(time_text(row.communication_ns), time_text(row.computation_ns)),
        *(text(row.wait_ns), text(row.caused_wait_ns)),
        "not measured" if row.last_arrivals is None else f"{row.last_arrivals:,}",
    )
