"""A data set whose right answers are what the server itself answered when it was asked alone.

That tells no truth about the model; it tells whether load changes answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layers.collectors.load.item import DataSet, Item


@dataclass(frozen=True, slots=True)
class Expecting:
    """`inner` with `answers` by item as what is expected; items without one have none."""

    inner: DataSet
    answers: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.inner.name}, with the server's own answers at a concurrency of 1"

    @property
    def regime(self) -> str:
        return self.inner.regime

    @property
    def recurring(self) -> bool:
        return self.inner.recurring

    def nonce(self, part: str) -> str:
        return self.inner.nonce(part)

    def measured(self, part: str) -> Sequence[Item]:
        return [replace(item, expected=self.answers.get(item.id, "")) for item in self.inner.measured(part)]

    def warmup(self, part: str) -> Sequence[Item]:
        return self.inner.warmup(part)
