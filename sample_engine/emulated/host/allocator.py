"""The allocator: blocks within a budget, from pools in front of one arena.

When the arena is full, unused blocks of the reclaimable pools go back to it, after the device has run
everything queued (a block may be unused by the host and not yet by the device), and the allocation is tried
once more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sample_engine.device import Memory
from sample_engine.emulated.host.arena import Arena
from sample_engine.emulated.host.pool import Block, Pool, rounded
from sample_engine.errors import OutOfDeviceMemory


class Allocator:
    """Memory of one kind, `what` in messages. `drain` waits for the device; `publish` is called with every
    change of the numbers in `memory`, of which `used_bytes` changes without notice.
    """

    def __init__(
        self, what: str, budget_bytes: int, drain: Callable[[], None], publish: Callable[[Memory], None]
    ) -> None:
        self._what = what
        self._arena = Arena(budget_bytes)
        self._pools: list[Pool] = []
        self._peak_bytes = self._retries = self._failures = 0
        self._drain = drain
        self._publish = publish
        self._lock = threading.RLock()

    def new_pool(self) -> Pool:
        pool = Pool()
        self._pools.append(pool)
        return pool

    def allocate(self, pool: Pool, size_bytes: int) -> Block:
        """A block of at least this size; raises OutOfDeviceMemory."""
        size_bytes = rounded(size_bytes)
        try:
            return Block(pool, pool.kept[size_bytes].pop(), size_bytes)
        except IndexError:
            return Block(pool, self._reserve(pool, size_bytes), size_bytes)

    def memory(self) -> Memory:
        with self._lock:
            reserved = self._arena.taken_bytes
            used = reserved - sum(pool.kept_bytes for pool in self._pools)
        return Memory(self._arena.size_bytes, reserved, used, self._peak_bytes, self._retries, self._failures)

    def _reserve(self, pool: Pool, size_bytes: int) -> int:
        with self._lock:
            offset = self._arena.take(size_bytes)
            if offset is None and pool.reclaimable:
                offset = self._retry(size_bytes)
            self._failures += offset is None
            self._peak_bytes = max(self._peak_bytes, self._arena.taken_bytes)
            self._publish(self.memory())
        if offset is None:
            raise OutOfDeviceMemory(self._failure_text(size_bytes))
        return offset

    def _retry(self, size_bytes: int) -> int | None:
        self._retries += 1
        self._drain()
        for pool in self._pools:
            if pool.reclaimable:
                for block in pool.drain():
                    self._arena.give_back(*block)
        return self._arena.take(size_bytes)

    def _failure_text(self, size_bytes: int) -> str:
        return (
            f"{self._what}: {size_bytes:,} bytes asked for, {self._arena.taken_bytes:,} of "
            f"{self._arena.size_bytes:,} in use (what is free may be in smaller pieces): "
            "use fewer or smaller buffers, or a larger budget"
        )
