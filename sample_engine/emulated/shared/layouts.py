"""How the elements of a buffer lie in memory, and how a buffer is named in one word.

Layouts are few (one per dtype, shape and strides in use) and never change, so the host appends each to a
shared table once and commands say its number. Offset and number in one 64-bit word are the *address* of a
buffer: all that the device process needs to make its view.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sample_engine.dtypes import DTYPES, DType
from sample_engine.emulated.shared.block import LAYOUT_BYTES, LAYOUT_SLOTS, SharedBlock, Word

LAYOUT_BITS = 16
MAX_DIMS = 7
_RECORD = struct.Struct(f"=QQ{MAX_DIMS}q{MAX_DIMS}q")


@dataclass(frozen=True, slots=True)
class Layout:
    """Dtype, shape, and strides in elements."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """What the elements take when they lie side by side."""
        return prod(self.shape) * self.dtype.item_bytes

    @property
    def is_contiguous(self) -> bool:
        expected = contiguous_strides(self.shape)
        return all(
            size == 1 or stride == one
            for size, stride, one in zip(self.shape, self.strides, expected, strict=True)
        )


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a tensor without holes, last dimension fastest."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def address(offset_bytes: int, layout_id: int) -> int:
    """The word that names a buffer."""
    return offset_bytes << LAYOUT_BITS | layout_id


def split_address(word: int) -> tuple[int, int]:
    """Offset in bytes and layout id of an address."""
    return word >> LAYOUT_BITS, word & (1 << LAYOUT_BITS) - 1


def write_layout(block: SharedBlock, layout_id: int, layout: Layout) -> None:
    """Append to the table; the address that uses it is sent later, which makes it visible."""
    if layout_id >= LAYOUT_SLOTS:
        raise ValueError(f"more than {LAYOUT_SLOTS} different layouts of buffers")
    if len(layout.shape) > MAX_DIMS:
        raise ValueError(f"a buffer has at most {MAX_DIMS} dimensions, got shape {layout.shape}")
    dims = (*layout.shape, *[0] * (MAX_DIMS - len(layout.shape)))
    strides = (*layout.strides, *[0] * (MAX_DIMS - len(layout.strides)))
    _RECORD.pack_into(
        block.layouts, layout_id * LAYOUT_BYTES, layout.dtype.code, len(layout.shape), *dims, *strides
    )
    block.words[Word.LAYOUTS] = layout_id + 1


def read_layout(block: SharedBlock, layout_id: int) -> Layout:
    """One entry of the table."""
    code, ndim, *rest = _RECORD.unpack_from(block.layouts, layout_id * LAYOUT_BYTES)
    return Layout(DTYPES[code], tuple(rest[:ndim]), tuple(rest[MAX_DIMS : MAX_DIMS + ndim]))
