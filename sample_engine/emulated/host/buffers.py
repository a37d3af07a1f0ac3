"""Buffers as the host holds them: an address, and the block that it lies in. Layouts are interned here."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

from sample_engine.bounds import check_narrow, check_view
from sample_engine.dtypes import DType
from sample_engine.emulated.host.pool import Block
from sample_engine.emulated.shared.block import SharedBlock
from sample_engine.emulated.shared.layouts import (
    Layout,
    address,
    contiguous_strides,
    split_address,
    write_layout,
)


class Interned(NamedTuple):
    """A layout with its number in the shared table, and its size (worked out once)."""

    layout_id: int
    layout: Layout
    size_bytes: int


class LayoutTable:
    """Numbers layouts in the order in which they are first met."""

    def __init__(self, block: SharedBlock) -> None:
        self._block = block
        self._known: dict[Layout, Interned] = {}
        self._contiguous: dict[tuple[DType, tuple[int, ...]], Interned] = {}
        self._lock = threading.Lock()

    def contiguous(self, dtype: DType, shape: tuple[int, ...]) -> Interned:
        """The layout without holes; the hot path of every allocation."""
        found = self._contiguous.get((dtype, shape))
        if found is None:
            found = self.intern(Layout(dtype, shape, contiguous_strides(shape)))
            self._contiguous[dtype, shape] = found
        return found

    def intern(self, layout: Layout) -> Interned:
        with self._lock:
            found = self._known.get(layout)
            if found is None:
                found = Interned(len(self._known), layout, layout.size_bytes)
                write_layout(self._block, found.layout_id, layout)
                self._known[layout] = found
        return found


@dataclass(slots=True, eq=False)
class EmulatedBuffer:
    """A buffer: `word` is its address; `block` holds the memory as long as the buffer lives. `table` also
    says which device it belongs to.
    """

    table: LayoutTable
    block: Block
    layout: Layout
    word: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    def view(self, *shape: int) -> EmulatedBuffer:
        check_view(self.shape, shape, contiguous=self.layout.is_contiguous)
        return self._at(0, Layout(self.dtype, shape, contiguous_strides(shape)))

    def narrow(self, dim: int, start: int, length: int) -> EmulatedBuffer:
        dtype, shape, strides = self.layout.dtype, self.layout.shape, self.layout.strides
        check_narrow(shape, dim, start, length)
        layout = Layout(dtype, (*shape[:dim], length, *shape[dim + 1 :]), strides)
        return self._at(start * strides[dim] * dtype.item_bytes, layout)

    def _at(self, further_bytes: int, layout: Layout) -> EmulatedBuffer:
        offset_bytes = split_address(self.word)[0] + further_bytes
        interned = self.table.intern(layout)
        return EmulatedBuffer(self.table, self.block, layout, address(offset_bytes, interned.layout_id))
