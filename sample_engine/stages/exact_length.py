"""Which chunks share a launch: those of exactly equal length, never two of one slot.

Chunks of one slot are parts of one stream, so the second must wait for the first: it belongs to a later
*wave*. Results find their way back by the places of their chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sample_engine.stages.payloads import CodeChunk

Batch = list[int]
"""Places of chunks in the list that was given."""


def batches(chunks: Sequence[CodeChunk], most: int) -> list[Batch]:
    """Launches in the order to run them: waves one after the other, equal lengths of a wave together, up to
    `most` at once.
    """
    groups: dict[tuple[int, int], Batch] = {}
    waves: Counter[int] = Counter()
    for place, chunk in enumerate(chunks):
        groups.setdefault((waves[chunk.slot], chunk.frames), []).append(place)
        waves[chunk.slot] += 1
    in_order = sorted(groups.items(), key=lambda one: one[0][0])
    return [group[start : start + most] for _, group in in_order for start in range(0, len(group), most)]


def halves(batch: Batch) -> list[Batch]:
    """Two smaller launches instead of one; one chunk cannot be halved."""
    middle = (len(batch) + 1) // 2
    return [half for half in (batch[:middle], batch[middle:]) if half]
