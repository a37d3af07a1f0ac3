"""Items out of a file: which of them are measured, and which are kept apart for warm-up.

The items of every part are the same, in an order by the seed. A warm-up item that begins as a measured one
does would warm a cache for it: where too few begin otherwise (a file whose prompts share a preamble), the
warm-up is made-up text instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from layers.collectors.load.item import Item
from layers.layer3_sweep.data_sets.beginnings import beginning
from layers.layer3_sweep.data_sets.lengths import Lengths, Shape
from layers.layer3_sweep.data_sets.options import Options
from layers.layer3_sweep.data_sets.synthetic_text import SyntheticText
from parsers.errors import UsageError

WARMUP_SHARE = 0.2
"""Of a file's items at most, so that a short file is measured with most of what it holds."""
CHARACTERS_A_WORD = 6


@dataclass(frozen=True, slots=True)
class FileSet:
    """`described` is the file with what tells its revision. Made by `file_set`."""

    described: str
    chosen: tuple[Item, ...]
    apart: tuple[Item, ...]
    options: Options

    @property
    def name(self) -> str:
        return f"{self.described}: {len(self.chosen)} items by seed {self.options.seed}"

    @property
    def regime(self) -> str:
        """Also says how many of the measured items begin alike: hits among them are part of the work."""
        starts = {beginning(item) for item in self.chosen}
        alike = len(self.chosen) - len(starts)
        return (
            f"{self.options.regime}; {alike} of them begin as another does" if alike else self.options.regime
        )

    @property
    def recurring(self) -> bool:
        return True

    def nonce(self, part: str) -> str:
        return self.options.mark(part)

    def measured(self, part: str) -> Sequence[Item]:
        return self.chosen

    def warmup(self, part: str) -> Sequence[Item]:
        return self.apart


def file_set(described: str, items: Sequence[Item], options: Options) -> FileSet:
    """Divide the items of a file; UsageError where nothing is left to warm up with."""
    options = replace(options, fresh=False)
    order = np.random.default_rng(options.seed).permutation(len(items))
    shuffled = [items[int(place)] for place in order]
    kept_apart = min(options.warmup, max(1, int(WARMUP_SHARE * len(shuffled))))
    chosen = shuffled[: min(options.items, len(shuffled) - kept_apart)] or shuffled[:1]
    known = {beginning(item) for item in chosen}
    apart = [item for item in shuffled[len(chosen) :] if beginning(item) not in known][: options.warmup]
    apart = apart or _made_up(chosen, options)
    if not apart:
        raise UsageError(f"{described}: a warm-up needs an audio file of its own: give two at least")
    return FileSet(described, tuple(chosen), tuple(apart), options)


def _made_up(chosen: Sequence[Item], options: Options) -> list[Item]:
    """Text as long as that of the items; nothing where they are audio."""
    lengths = [sum(len(message.content) for message in item.messages) or len(item.text) for item in chosen]
    words = [max(1.0, length / CHARACTERS_A_WORD) for length in lengths]
    if any(item.audio for item in chosen):
        return []
    made = SyntheticText(options, Lengths(Shape.UNIFORM, min(words), max(words))).warmup("")
    asked = [item.max_tokens for item in chosen]
    return [replace(item, max_tokens=asked[n % len(asked)]) for n, item in enumerate(made)]
