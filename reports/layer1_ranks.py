"""Ranks of one run beside each other: who waited for whom."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.wording import exact_pct, time_text
from layers.layer1_gpu_busy.document_entries import DeviceEntry
from layers.layer1_gpu_busy.ranks import RankRow, RankTable, straggler_text
from reports.layer1_subject import Artifacts, devices_basis
from reports.model import Block, Column, Paragraph, Table

RANKS_SHOWN = 16
"""Of more ranks those that kept the others waiting longest; `--json` has all."""
COLUMNS = (
    Column("rank"),
    *(Column(title, numeric=True) for title in ("device-op time", "communication", "computation")),
    *(Column(title, numeric=True) for title in ("waited", "caused waits of")),
    Column("last to join", "collectives", numeric=True),
)


def rank_blocks(ranks: RankTable, devices: Sequence[DeviceEntry], artifacts: Artifacts) -> list[Block]:
    sources = {row.source for row in ranks.rows}
    basis = devices_basis([device for device in devices if device.source in sources], artifacts)
    shown = sorted(ranks.rows, key=lambda row: -(row.caused_wait_ns or 0.0))[:RANKS_SHOWN]
    rows = tuple(_rank_row(row) for row in ranks.rows if row in shown)
    title = f"Ranks of {ranks.name or 'one run'}"
    if len(rows) < len(ranks.rows):
        title = f"{title}, the {len(rows)} that others waited for longest (perfkit report --json has all)"
    return [Table(title, COLUMNS, rows, basis), Paragraph("Straggler", straggler_text(ranks), basis)]


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
