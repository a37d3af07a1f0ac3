"""What a non-causal encoder needs: every row of a window sees the whole window, and nothing else.

A window is one tile of rows for products, so its result does not depend on how many others a launch has.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel
from sample_engine.primitives.attention import MASKED

TAPS = 3


@kernel("bhw btc")
def every_second(out: Tensor, x: Tensor) -> None:
    """Every second step with its two neighbours, flat, for a convolution of stride 2: (windows, steps,
    channels) to (windows, steps / 2, TAPS x channels); a zero precedes the first step.
    """
    windows, steps, channels = x.shape
    padded = torch.nn.functional.pad(x, (0, 0, 1, 0))
    out.view(windows, steps // 2, TAPS, channels).copy_(padded.unfold(1, TAPS, 2).transpose(2, 3))


@kernel("btd btd td")
def add_to_each(out: Tensor, x: Tensor, table: Tensor) -> None:
    torch.add(x, table, out=out)


@kernel("bhtp b:int64")
def length_mask(mask: Tensor, lengths: Tensor) -> None:
    """All rows of a window see its first `lengths` positions; the rest is padding."""
    unseen = torch.arange(mask.shape[3], device=mask.device) >= lengths[:, None]
    mask.zero_().masked_fill_(unseen[:, None, None], MASKED)
