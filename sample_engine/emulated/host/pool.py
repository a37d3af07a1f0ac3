"""Blocks of memory kept for reuse by size, so that an allocation is mostly one list pop.

Each stream has a pool, for a block may be reused while commands that still use it are queued, and only the
order of one stream makes that safe. The captures of a stream share another pool, which is not reclaimable
while any of its graphs lives. A pool never splits a block: what it keeps goes back to the arena when memory
is short.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

UNIT_BYTES = 512
"""Sizes are rounded up to this, as torch's CUDA allocator does (kMinBlockSize)."""


def rounded(size_bytes: int) -> int:
    """Size of the block for a request; at least one unit, so that every buffer has an address of its own."""
    return max(1, -(-size_bytes // UNIT_BYTES)) * UNIT_BYTES


class Pool:
    """Offsets of unused blocks by size. A reclaimable pool may be emptied whenever memory is short.

    Lists change by whole items only, which any thread or the garbage collector may do at any moment.
    """

    def __init__(self) -> None:
        self.reclaimable = True
        self.kept: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def kept_bytes(self) -> int:
        return sum(size_bytes * len(offsets) for size_bytes, offsets in list(self.kept.items()))

    def drain(self) -> list[tuple[int, int]]:
        """Take out everything that is kept, as (offset, size)."""
        found: list[tuple[int, int]] = []
        for size_bytes, offsets in list(self.kept.items()):
            with suppress(IndexError):  # another thread may take the last one
                while True:
                    found.append((offsets.pop(), size_bytes))
        return found


class Block:
    """A piece of memory; dropping the last reference to it puts it back into its pool."""

    __slots__ = ("offset_bytes", "pool", "size_bytes")

    def __init__(self, pool: Pool, offset_bytes: int, size_bytes: int) -> None:
        self.pool = pool
        self.offset_bytes = offset_bytes
        self.size_bytes = size_bytes

    def __del__(self) -> None:
        self.pool.kept[self.size_bytes].append(self.offset_bytes)
