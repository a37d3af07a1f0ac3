"""Causal convolution over time with carried state, as a product.

Rows are channels-last: (items, time, channels). A window gathers the last `k` time steps of each row,
reaching into what the item's earlier chunks left behind; the convolution is then `linear` on the windows, in
tiles of rows as everywhere. So a stream that is cut into chunks meets the same arithmetic as one that is not,
as long as the tiles stay the same.

What chunks leave behind is carried by slot: `recall` reads it, `tail` makes the next, and whoever runs the
step puts that in place at its end (`kernels.put_rows`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel


@kernel("b:bool b:int64 s:int64")
def at_start(out: Tensor, slots: Tensor, offset: Tensor) -> None:
    """Which of these slots are at the beginning of their stream."""
    torch.eq(offset[slots], 0, out=out)


@kernel("bkc skc b:int64 b:bool")
def recall(out: Tensor, carry: Tensor, slots: Tensor, new: Tensor) -> None:
    """The last k steps of each slot; zeros for a new one, whatever its last tenant left."""
    torch.index_select(carry, 0, slots, out=out)
    out.masked_fill_(new[:, None, None], 0.0)


@kernel("btw btc bkc")
def windows(out: Tensor, x: Tensor, before: Tensor) -> None:
    """Windows of k + 1 steps, oldest first, flat: `w` = (k + 1) x channels; `before` holds k steps."""
    items, time, channels = x.shape
    steps = before.shape[1] + 1
    whole = torch.cat((before, x), 1)
    out.view(items, time, steps, channels).copy_(whole.unfold(1, steps, 1).transpose(2, 3))


@kernel("bkc btc bkc")
def tail(out: Tensor, x: Tensor, before: Tensor) -> None:
    """The last k steps, for the next chunk."""
    out.copy_(torch.cat((before, x), 1)[:, x.shape[1] :])
