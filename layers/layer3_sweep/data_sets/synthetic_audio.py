"""Made-up sound of chosen lengths, as files to transcribe.

There is no right transcript; what the server says of each file at the least load stands for it. Files are
named by what makes their content, and one that is there is not made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from layers.collectors.load.item import Item
from layers.layer3_sweep.data_sets.lengths import Lengths, Shape
from layers.layer3_sweep.data_sets.options import digest
from layers.layer3_sweep.data_sets.synthetic import Synthetic
from layers.layer3_sweep.data_sets.wav_files import SAMPLE_RATE_HZ, write_sound

SECONDS_OF_CLIPS = Lengths(Shape.UNIFORM, 1.0, 8.0)
"""As clips of SeedTTS are: 4.7 s at the mean, 8.8 s at most."""
NAME_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class SyntheticAudio(Synthetic):
    """`lengths` in seconds; `folder` takes the files."""

    folder: Path
    lengths: Lengths = SECONDS_OF_CLIPS

    @property
    def name(self) -> str:
        return f"synthetic audio, {self.lengths} seconds, seed {self.options.seed}"

    def _items(self, what: str, part: str, n: int) -> list[Item]:
        lengths = self.lengths.draw(n, np.random.default_rng(self.options.seed))
        return [
            self._item(self._id(what, part, number), float(seconds)) for number, seconds in enumerate(lengths)
        ]

    def _item(self, name: str, seconds: float) -> Item:
        seconds = round(seconds * SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
        file = digest(f"{self.options.seed} {name} {seconds!r}")[:NAME_CHARACTERS]
        path = self.folder / f"{file}.wav"
        if not path.exists():
            write_sound(path, seconds, np.random.default_rng(int(file, 16)))
        return Item(id=name, audio=str(path), audio_seconds=seconds)
