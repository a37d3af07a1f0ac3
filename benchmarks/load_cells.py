"""What the benchmark of load clients measures: its modes, one measurement (a cell), and the columns of its
tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PACED, ONE_AT_ONCE, MANY_AT_ONCE = "paced, 100 events", "at once, 1 event", "at once, 64 events"
MODES = {PACED: (100, 10), ONE_AT_ONCE: (1, 0), MANY_AT_ONCE: (64, 0)}
"""Events a request, and the milliseconds between them."""

Cell = Mapping[str, Any]
"""`benchmarks.load_arms.Cost` as a mapping, and `events`: how many a request has."""
Cells = Mapping[tuple[str, int], Mapping[str, Sequence[Cell]]]
"""By mode and requests at a time: the cells of each arm."""


def quantile_ms(values: Sequence[int], share: float) -> float:
    """Not a number where there is no value."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6 if ordered else math.nan


COLUMNS: dict[str, Callable[[Cell], float]] = {
    "req/s": lambda cell: cell["chunks"] / cell["events"] / cell["seconds"],
    "cpu %": lambda cell: 100 * cell["cpu_s"] / cell["seconds"],
    "us/request": lambda cell: 1e6 * cell["cpu_s"] * cell["events"] / max(cell["chunks"], 1),
    "us/chunk": lambda cell: 1e6 * cell["cpu_s"] / max(cell["chunks"], 1),
    "added p50 ms": lambda cell: quantile_ms(cell["added_ns"], 0.5),
    "added p99 ms": lambda cell: quantile_ms(cell["added_ns"], 0.99),
    "first p50 ms": lambda cell: quantile_ms(cell["first_ns"], 0.5),
}
"""`first`: of the first event alone, which is the error of a TTFT. Requests are counted by their events."""


def values(cells: Sequence[Cell], column: str) -> list[float]:
    """Of the cells that have one, least first."""
    return sorted(value for value in map(COLUMNS[column], cells) if not math.isnan(value))


def median(cells: Sequence[Cell], column: str) -> float:
    """Not a number where no cell has one."""
    found = values(cells, column)
    return statistics.median(found) if found else math.nan


def text(cells: Sequence[Cell], column: str) -> str:
    """Median and range."""
    found = values(cells, column)
    if not found:
        return "-"
    digits = 0 if found[-1] >= 100 else 1 if found[-1] >= 10 else 3
    low, middle, high = (f"{v:,.{digits}f}" for v in (found[0], statistics.median(found), found[-1]))
    return f"{middle} [{low} to {high}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
