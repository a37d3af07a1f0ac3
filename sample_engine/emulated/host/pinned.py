"""Pinned memory: the part of the shared block that the device process copies to and from."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sample_engine.emulated.host.buffers import Interned
from sample_engine.emulated.host.pool import Block
from sample_engine.emulated.shared.block import SharedBlock
from sample_engine.emulated.shared.layouts import Layout, address


@dataclass(frozen=True, slots=True, eq=False)
class PinnedSlot:
    """A contiguous array of the host; `word` is its address in pinned memory."""

    block: Block
    layout: Layout
    word: int
    array: npt.NDArray[Any]


def pinned_slot(shared: SharedBlock, block: Block, interned: Interned) -> PinnedSlot:
    """A slot in a block of pinned memory, its content whatever was there."""
    layout, start = interned.layout, block.offset_bytes
    data = shared.pinned[start : start + interned.size_bytes]
    array = np.frombuffer(data, dtype=layout.dtype.name).reshape(layout.shape)
    return PinnedSlot(block, layout, address(start, interned.layout_id), array)


class InFlight:
    """Keeps the slots of queued copies alive, as torch's pinned allocator does: their memory must not be
    handed out again before the copy has run.
    """

    def __init__(self) -> None:
        self._slots: deque[tuple[int, PinnedSlot]] = deque()

    def add(self, number: int, slot: PinnedSlot, completed: int) -> None:
        """The copy with this command number uses the slot; let go of those that have completed."""
        while self._slots and self._slots[0][0] <= completed:
            self._slots.popleft()
        self._slots.append((number, slot))
