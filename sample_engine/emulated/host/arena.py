"""Free ranges of an address space: first fit, neighbours joined."""

from __future__ import annotations

from bisect import bisect_left


class Arena:
    """Hands out ranges of [0, size_bytes)."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.taken_bytes = 0
        self._free = [(0, size_bytes)] if size_bytes else []

    def take(self, size_bytes: int) -> int | None:
        """Offset of a free range of this size, None where no one is large enough."""
        for index, (offset, length) in enumerate(self._free):
            if length >= size_bytes:
                rest = [(offset + size_bytes, length - size_bytes)] if length > size_bytes else []
                self._free[index : index + 1] = rest
                self.taken_bytes += size_bytes
                return offset
        return None

    def give_back(self, offset: int, size_bytes: int) -> None:
        """Free a range that `take` handed out."""
        self.taken_bytes -= size_bytes
        index = bisect_left(self._free, (offset, 0))
        if index < len(self._free) and self._free[index][0] == offset + size_bytes:
            size_bytes += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == offset:
            index -= 1
            before = self._free.pop(index)
            offset, size_bytes = before[0], before[1] + size_bytes
        self._free.insert(index, (offset, size_bytes))
