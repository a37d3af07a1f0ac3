"""How much of a data set is used, and how it meets content caches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from parsers.errors import UsageError

MARK_CHARACTERS = 12
MARKED = (
    "each request bears a mark of its own in front, so that a cache of contents or prefixes finds nothing"
)
FRESH = "fresh items for each point and repeat: a cache knows nothing of them but what a chat template adds"
RECURRING = (
    "the same items at every point and repeat: a cache of contents or prefixes may know them after the first"
)


@dataclass(frozen=True, slots=True)
class Options:
    """`items` measured ones a part and `warmup` others, drawn by `seed`. `fresh`: new ones for each part,
    where they are made up. `nonce`: every request bears a mark of its own."""

    items: int = 64
    warmup: int = 16
    seed: int = 0
    fresh: bool = True
    nonce: bool = False

    def __post_init__(self) -> None:
        if self.items < 1 or self.warmup < 1:
            raise UsageError(f"a data set of {self.items} items and {self.warmup} for warm-up: 1 at least")

    @property
    def regime(self) -> str:
        return MARKED if self.nonce else FRESH if self.fresh else RECURRING

    def mark(self, part: str) -> str:
        """What `LoadPlan.nonce` of a part is to be: "" where requests go as they are."""
        return digest(f"{self.seed} {part}")[:MARK_CHARACTERS] if self.nonce else ""

    def drawn(self, what: str, part: str = "") -> np.random.Generator:
        """Chance that is the same for the same seed, purpose and part; parts count where items are fresh."""
        return np.random.default_rng(int(digest(f"{self.seed} {what} {part if self.fresh else ''}"), 16))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
