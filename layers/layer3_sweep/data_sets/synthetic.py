"""What made-up data sets share: how their parts are told apart, and what a cache sees of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from layers.collectors.load.item import Item
from layers.layer3_sweep.data_sets.options import Options


@dataclass(frozen=True, slots=True)
class Synthetic(ABC):
    """A `DataSet` but for its name and its items."""

    options: Options

    @property
    def regime(self) -> str:
        return self.options.regime

    @property
    def recurring(self) -> bool:
        return not self.options.fresh

    def nonce(self, part: str) -> str:
        return self.options.mark(part)

    def measured(self, part: str) -> Sequence[Item]:
        return self._items("measured", part, self.options.items)

    def warmup(self, part: str) -> Sequence[Item]:
        return self._items("warmup", part, self.options.warmup)

    def _id(self, what: str, part: str, number: int) -> str:
        """Of one item; the same in every part unless each has fresh ones."""
        place = f"{part}/" if self.options.fresh else ""
        return f"{place}{what[0]}{number}"

    @abstractmethod
    def _items(self, what: str, part: str, n: int) -> list[Item]:
        """`n` items of a part, "measured" or "warmup" ones."""
