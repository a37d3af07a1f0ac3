"""What `perfkit layer1` prints of several devices together: symptoms by device, and ranks that wait."""

from __future__ import annotations

from layers.evidence.result import Result
from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.ranks import RankRow, RankTable, straggler_text
from perfkit.cli import output

RANKS_SHOWN = 16
"""Of more ranks those that kept the others waiting longest; --json has all."""
SCOPES_NAMED = 2
"""Of more devices only the count is shown."""


def show_spread(result: Result) -> None:
    """The symptoms of all devices, each with how many have it."""
    counts = result.sections.get("symptom_counts", [])
    if not counts:
        return
    output.line()
    rows = [[f"{c['code']} {c['title']}", _on(c["scopes"], c["devices"])] for c in counts]
    output.show(output.table(["symptoms over all devices", "on"], rows))


def _on(scopes: list[str], devices: int) -> str:
    if len(scopes) == devices:
        return f"all {devices}"
    named = f": {'; '.join(scopes)}" if len(scopes) <= SCOPES_NAMED else ""
    return f"{len(scopes)} of {devices}{named}"


def show_ranks(table: RankTable) -> None:
    """The ranks of one run: their spread, who waited for whom, and the straggler."""
    output.line()
    low, middle, high = table.min_ratio, table.median_ratio, table.max_ratio
    if low is not None and middle is not None and high is not None:
        ratios = f"{len(table.rows)} from {pct(low)} to {pct(high)}, median {pct(middle)}"
        output.paragraph("ranks", f"{table.name}: {ratios}" if table.name else ratios)
    if table.collectives is not None:
        _waits(table, table.collectives)
    output.paragraph("straggler", straggler_text(table))


def _waits(table: RankTable, collectives: int) -> None:
    rows = list(table.rows)
    if len(rows) > RANKS_SHOWN:
        rows = sorted(rows, key=lambda row: -(row.caused_wait_ns or 0.0))[:RANKS_SHOWN]
    head = [table.name, "communication", "waited", "caused waits of", f"last to join, of {collectives}"]
    several = len({row.rank for row in table.rows}) < len(table.rows)
    output.show(output.table(head, [_row(row, several) for row in rows], right=[1, 2, 3, 4]))
    if len(table.rows) > RANKS_SHOWN:
        less = counted(len(table.rows) - RANKS_SHOWN, "rank")
        output.line(f"and {less} that caused less: --json lists all")


def _row(row: RankRow, several_devices: bool) -> list[str]:
    times = (row.communication_ns, row.wait_ns or 0, row.caused_wait_ns or 0.0)
    device = f", device {row.device}" if several_devices else ""
    return [f"rank {row.rank}{device}", *map(time_text, times), f"{row.last_arrivals:,}"]
