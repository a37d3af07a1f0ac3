"""Made-up English: common words by chance, in sentences, as prompts or as text to say aloud.

It means nothing, so there is no right answer; two items share a first word once in some hundred pairs and
never a beginning. A word is about 1.3 tokens; what a prompt really was, the server's usage says. Item `n` is
as long in one part as in every other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.collectors.load.item import Item
from layers.layer3_sweep.data_sets.lengths import Lengths, Shape
from layers.layer3_sweep.data_sets.synthetic import Synthetic
from layers.layer3_sweep.data_sets.words import WORDS

SENTENCE_WORDS = (8, 15)
"""Shortest and longest but one."""
WORDS_OF_PROMPTS = Lengths(Shape.UNIFORM, 40, 400)


@dataclass(frozen=True, slots=True)
class SyntheticText(Synthetic):
    """`lengths` in words; `outputs` in tokens asked for, None where the server decides."""

    lengths: Lengths = WORDS_OF_PROMPTS
    outputs: Lengths | None = None

    @property
    def name(self) -> str:
        asked = f", {self.outputs} tokens asked for" if self.outputs else ""
        return f"synthetic text, {self.lengths} words{asked}, seed {self.options.seed}"

    def _items(self, what: str, part: str, n: int) -> list[Item]:
        order = np.random.default_rng(self.options.seed)
        words = self.lengths.draw(n, order)
        tokens = self.outputs.draw(n, order) if self.outputs else None
        rng = self.options.drawn(f"text {what}", part)
        return [
            Item(
                id=self._id(what, part, number),
                text=made_up(round(length), rng),
                max_tokens=round(float(tokens[number])) if tokens is not None else None,
            )
            for number, length in enumerate(words)
        ]


def made_up(n: int, rng: np.random.Generator) -> str:
    """So many words, at least one, in sentences."""
    words = [WORDS[place] for place in rng.integers(0, len(WORDS), max(1, n))]
    sentences = []
    while words:
        length = int(rng.integers(*SENTENCE_WORDS))
        sentence, words = words[:length], words[length:]
        sentences.append(" ".join(sentence).capitalize() + ".")
    return " ".join(sentences)
