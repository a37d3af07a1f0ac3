"""Which slots of a stage are taken, and how many of them a launch must cover.

The lowest free slot is taken first, so that the open ones stay together and the bucket small.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from sample_engine.stages.stage import NoFreeSlot

BUCKETS = (4, 8, 16, 32, 64)
"""Launches cover so many slots, and each number has its graph. Multiples of a tile of rows."""


class Slots:
    """Slots 0 to count - 1, rounded up to a bucket: `buckets` are those that a launch may need."""

    def __init__(self, count: int) -> None:
        if not 1 <= count <= BUCKETS[-1]:
            raise ValueError(f"a stage has 1 to {BUCKETS[-1]} slots, not {count}")
        self.buckets = [one for one in BUCKETS if one < count] + [bucket_of(count)]
        self._free = list(range(count))
        heapify(self._free)
        self._open: set[int] = set()

    @property
    def rows(self) -> int:
        """Rows of state to allocate."""
        return self.buckets[-1]

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self) -> int:
        if not self._free:
            raise NoFreeSlot(f"all {len(self._open)} slots are taken")
        slot = heappop(self._free)
        self._open.add(slot)
        return slot

    def give_back(self, slot: int) -> None:
        if slot not in self._open:
            raise ValueError(f"slot {slot} is not open: closed twice?")
        self._open.remove(slot)
        heappush(self._free, slot)


def bucket_of(slots: int) -> int:
    """The smallest launch that covers so many slots."""
    return next(one for one in BUCKETS if one >= slots)
