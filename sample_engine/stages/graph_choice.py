"""For which chunk lengths the vocoder captures graphs, and what became of it.

A graph is for one exact length; nothing is padded, since padding changes results. Lengths are many and memory
is not, so those that occur most are captured until they cover enough of the steps, or memory is spent. What
occurs is expected from how outputs are cut, or counted in an earlier run: a plausible list of round numbers
can miss most steps (two public engines found 39 % and 28 % of theirs covered: SGLang-Omni 886, 1912).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LengthCoverage:
    """Steps of chunks of `frames` frames; `captured`: for how many items at once there are graphs."""

    frames: int
    captured: tuple[int, ...]
    replays: int
    eager: int

    @property
    def share(self) -> float:
        """Of the steps, those that were replays."""
        return self.replays / max(1, self.replays + self.eager)


def expected_lengths(chunk_frames: int, most_frames: int) -> Counter[int]:
    """How often each length occurs when outputs of 1 to `most_frames` frames, one of each, are cut."""
    counts: Counter[int] = Counter()
    for frames in range(1, most_frames + 1):
        whole, rest = divmod(frames, chunk_frames)
        counts[chunk_frames] += whole
        counts[rest] += rest > 0
    return +counts


def chosen_lengths(
    counts: Mapping[int, int], share: float, budget_bytes: float, bytes_a_frame: float
) -> list[int]:
    """The most frequent lengths that together have this share of all steps; longest first. One whose graphs
    do not fit in what is left of the budget is passed over.
    """
    wanted, covered, left_bytes = share * sum(counts.values()), 0, budget_bytes
    chosen: list[int] = []
    for frames in sorted(counts, key=lambda one: (-counts[one], one)):
        needed = frames * bytes_a_frame
        if covered < wanted and needed <= left_bytes:
            chosen.append(frames)
            covered += counts[frames]
            left_bytes -= needed
    return sorted(chosen, reverse=True)
