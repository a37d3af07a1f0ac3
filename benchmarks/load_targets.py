"""What perfkit's load client has to keep to, against the other arms of the same run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.load_cells import MANY_AT_ONCE, ONE_AT_ONCE, PACED, Cells, median, table


@dataclass(frozen=True, slots=True)
class Target:
    """perfkit's median in one column, as a multiple of that of the arm `against` ("": as it stands)."""

    column: str
    mode: str
    n: int
    against: str
    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        sign = "at least" if self.at_least else "at most"
        times = f" x {self.against}" if self.against else ""
        return f"{self.mode}, {self.n} at a time: {self.column} {sign} {self.limit:g}{times}"

    def found(self, cells: Cells) -> float:
        """Not a number where an arm was not measured."""
        arms = cells.get((self.mode, self.n), {})
        value = median(arms.get("perfkit", ()), self.column)
        other = median(arms.get(self.against, ()), self.column) if self.against else 1.0
        return value / other if other else math.nan

    def holds(self, found: float) -> bool:
        return found >= self.limit if self.at_least else found <= self.limit


TARGETS = (
    *(
        Target("req/s", mode, n, "aiohttp", 3.0, at_least=True)
        for mode in (ONE_AT_ONCE, MANY_AT_ONCE)
        for n in (64, 256)
    ),
    Target("us/chunk", PACED, 64, "aiohttp", 0.5),
    Target("added p50 ms", PACED, 64, "aiohttp", 0.25),
    Target("us/chunk", PACED, 64, "floor", 2.0),
    *(Target("first p50 ms", PACED, n, "", 1.0) for n in (64, 256)),
)


def judged(cells: Cells) -> str:
    """Each target, what was found, and whether it holds."""
    return table(["target", "found", "holds"], list(_rows(cells)))


def _rows(cells: Cells) -> Iterator[list[str]]:
    for target in TARGETS:
        found = target.found(cells)
        if math.isnan(found):
            yield [str(target), "-", "not measured"]
        else:
            yield [str(target), f"{found:.3g}", "yes" if target.holds(found) else "no"]
