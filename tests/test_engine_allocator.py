"""The allocator of the emulated device: budget, reuse, retries, and what captures keep."""

from __future__ import annotations

import pytest

from sample_engine.device import Memory
from sample_engine.emulated.host.allocator import Allocator
from sample_engine.emulated.host.pool import UNIT_BYTES
from sample_engine.errors import OutOfDeviceMemory


class Watched:
    """An allocator of four units that counts how often it waited for the device."""

    def __init__(self) -> None:
        self.drained = 0
        self.published: list[Memory] = []
        self.allocator = Allocator("device memory", 4 * UNIT_BYTES, self._drain, self.published.append)
        self.pool = self.allocator.new_pool()

    def _drain(self) -> None:
        self.drained += 1


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_dropped_block_is_the_next_one_of_its_size(watched: Watched) -> None:
    block = watched.allocator.allocate(watched.pool, 100)
    offset = block.offset_bytes
    del block
    assert watched.allocator.allocate(watched.pool, UNIT_BYTES).offset_bytes == offset
    assert watched.drained == 0


def test_used_memory_falls_when_a_block_is_dropped_and_reserved_memory_does_not(watched: Watched) -> None:
    block = watched.allocator.allocate(watched.pool, 2 * UNIT_BYTES)
    assert watched.allocator.memory().used_bytes == 2 * UNIT_BYTES
    del block
    memory = watched.allocator.memory()
    assert (memory.used_bytes, memory.reserved_bytes, memory.budget_bytes) == (0, 1024, 2048)


def test_a_pool_never_gets_what_another_stream_dropped(watched: Watched) -> None:
    other = watched.allocator.new_pool()
    block = watched.allocator.allocate(watched.pool, 1)
    offset = block.offset_bytes
    del block
    assert watched.allocator.allocate(other, 1).offset_bytes != offset


def test_an_allocation_over_the_budget_fails_and_says_by_how_much(watched: Watched) -> None:
    block = watched.allocator.allocate(watched.pool, 3 * UNIT_BYTES)
    with pytest.raises(OutOfDeviceMemory, match="1,024 bytes asked for, 1,536 of 2,048 in use"):
        watched.allocator.allocate(watched.pool, 2 * UNIT_BYTES)
    assert watched.allocator.memory().failures == 1
    del block
    watched.allocator.allocate(watched.pool, 4 * UNIT_BYTES)


def test_unused_memory_of_all_streams_is_given_back_after_the_device_was_waited_for(watched: Watched) -> None:
    other = watched.allocator.new_pool()
    for pool in (watched.pool, other):
        watched.allocator.allocate(pool, 2 * UNIT_BYTES)
    assert watched.drained == 0
    whole = watched.allocator.allocate(other, 4 * UNIT_BYTES)
    assert (whole.offset_bytes, watched.drained, watched.allocator.memory().retries) == (0, 1, 1)


def test_a_pool_that_is_not_reclaimable_keeps_its_blocks_until_it_is(watched: Watched) -> None:
    captures = watched.allocator.new_pool()
    captures.reclaimable = False
    watched.allocator.allocate(captures, 3 * UNIT_BYTES)
    with pytest.raises(OutOfDeviceMemory):
        watched.allocator.allocate(watched.pool, 2 * UNIT_BYTES)
    captures.reclaimable = True
    watched.allocator.allocate(watched.pool, 4 * UNIT_BYTES)


def test_a_capture_does_not_wait_for_the_device(watched: Watched) -> None:
    captures = watched.allocator.new_pool()
    captures.reclaimable = False
    watched.allocator.allocate(watched.pool, 4 * UNIT_BYTES)
    with pytest.raises(OutOfDeviceMemory):
        watched.allocator.allocate(captures, 1)
    assert watched.drained == 0


def test_every_change_of_the_reserve_is_published(watched: Watched) -> None:
    watched.allocator.allocate(watched.pool, 1)
    watched.allocator.allocate(watched.pool, 1)
    watched.allocator.allocate(watched.pool, 4 * UNIT_BYTES)
    assert [one.reserved_bytes for one in watched.published] == [512, 2048]
    assert watched.published[-1].retries == 1
