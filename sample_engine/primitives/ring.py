"""A cache of keys and values as a ring: position p of a slot lies at place p mod the ring's size.

Each slot is at an offset of its own, so that slots of any age share a launch. A chunk writes its places
before it reads them, and the ring has room for the window and a chunk together: no place that a row still
sees is overwritten by its own chunk, nor by a step that failed half-way and is run again. The mask follows
from the offset alone, so a slot starts anew by going back to 0.

Shapes as in `attention`; the last place of a cache belongs to no position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel
from sample_engine.primitives.attention import MASKED


@kernel("bht:int64 bhtp bh:int64 b:int64 s:int64")
def ring_places(
    places: Tensor, mask: Tensor, caches: Tensor, slots: Tensor, offset: Tensor, window: int
) -> None:
    """Where a chunk of each slot writes, what its rows see (themselves and `window` - 1 before), and which
    entries of the cache (slots x heads) are the items'.
    """
    _, heads, time, positions = mask.shape
    ring = positions - 1
    torch.add(slots[:, None] * heads, torch.arange(heads, device=slots.device), out=caches)
    position = offset[slots][:, None] + torch.arange(time, device=slots.device)
    torch.add(caches[:, :, None] * positions, (position % ring)[:, None], out=places)
    held = _newest(position[:, -1:], ring, positions)[:, None]
    row = position[:, :, None]
    unseen = (held > row) | (held <= row - window) | (held < 0)
    unseen[:, :, ring:] = True
    mask.zero_().masked_fill_(unseen[:, None], MASKED)


@kernel("s:int64 b:int64")
def move_on(offset: Tensor, slots: Tensor, rows: int) -> None:
    """So many positions further."""
    offset.index_add_(0, slots, torch.full_like(slots, rows))


def _newest(last: Tensor, ring: int, places: int) -> Tensor:
    """(items, places): the newest position up to `last` that lies at each place; negative: none yet."""
    return last - (last - torch.arange(places, device=last.device)) % ring
