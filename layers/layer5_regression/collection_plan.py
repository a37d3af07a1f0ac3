"""A collection of outputs, described: which servers are asked what, in which cells. Kept beside its arms.

Arms are asked one after the other, A, B and A once more: what drifts over the session makes A differ from
itself and is not taken for the change. Each arm asks every item once in every cell of the grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layers.collectors.load.plan import EndpointChoice, Timeouts
from layers.layer3_sweep.subject import Subject
from layers.layer5_regression.grid import FIRST
from layers.layer5_regression.model import Cell
from parsers.errors import UsageError

A, B, AA = "a", "b", "aa"
NAMES = {A: "A", B: "B", AA: "A'"}
FIRST_ITEMS = 1
"""Asked in the cell of the first requests: with the second one it is a first no more."""
SEED = 5
"""Of data sets: another than that of sweeps, so that made-up items are others."""


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """One side: its server, and the settings that it is started with, beside those of `subject`."""

    name: str
    subject: Subject
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """`arms` in the order of asking; `data` in the words of `data_sets.registry`; `counters` are samples of
    the server's metrics that must move where the changed path runs."""

    arms: tuple[ArmPlan, ...]
    endpoint: EndpointChoice
    data: str
    cells: tuple[Cell, ...]
    counters: tuple[str, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)

    def __post_init__(self) -> None:
        if not self.cells:
            raise UsageError("a collection needs a cell: --concurrency N")

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of settings in which the arms are meant to differ."""
        first, *rest = self.arms
        names = dict.fromkeys(name for arm in self.arms for name in arm.settings)
        return tuple(
            name for name in names if any(arm.settings.get(name) != first.settings.get(name) for arm in rest)
        )


def items_in(cell: Cell, items: int) -> int:
    """How many items a cell asks."""
    return min(FIRST_ITEMS, items) if cell.cache == FIRST else items
