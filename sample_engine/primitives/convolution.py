"""Causal convolution over time with carried state, as a product.

Rows are channels-last: (items, time, channels). A window gathers the last `k` time steps of each row,
reaching into what the item's earlier chunks left behind; the convolution is then `linear` on the windows, in
tiles of rows as everywhere. So a stream that is cut into chunks meets the same arithmetic as one that is not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel


@kernel("btw btc bkc")
def windows(out: Tensor, x: Tensor, carry: Tensor) -> None:
    """Windows of k + 1 steps, oldest first, flat: `w` = (k + 1) x channels; `carry` holds k steps."""
    items, time, channels = x.shape
    steps = carry.shape[1] + 1
    whole = torch.cat((carry, x), 1)
    out.view(items, time, steps, channels).copy_(whole.unfold(1, steps, 1).transpose(2, 3))


@kernel("bkc btc b:bool")
def keep_tail(carry: Tensor, x: Tensor, live: Tensor) -> None:
    """Carry the last k steps on, in place, for items that are live."""
    tail = torch.cat((carry, x), 1)[:, x.shape[1] :]
    carry.copy_(torch.where(live[:, None, None], tail, carry))
