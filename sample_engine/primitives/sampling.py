"""The next id of each row: the largest logit, or a seeded draw.

A draw adds Gumbel noise to the logits and takes the largest. The noise is a hash of the row's seed, its step
and the place of the logit: nothing is drawn from a generator, so a row draws the same alone, in a batch and
in a replayed graph, and the host is not asked. With temperature 0 the noise is multiplied by 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel

WORD = (1 << 32) - 1
MIX = 0x45D9F3B
"""An odd multiplier of a well-known 32-bit integer hash; below 2^27, so that products fit int64."""
MANTISSA = 24
"""Bits of a draw: what float32 holds exactly."""


@kernel("...:int64 ...v")
def largest(out: Tensor, logits: Tensor) -> None:
    torch.argmax(logits, -1, out=out)


@kernel("cbv cbv b:int64 b:int64 b")
def add_noise(
    out: Tensor, logits: Tensor, seed: Tensor, step: Tensor, temperature: Tensor, first_place: int
) -> None:
    """Logits of several channels, each row with its own noise. Calls for other channels of the same step
    begin at another place.
    """
    channels, _, size = logits.shape
    place = torch.arange(first_place, first_place + channels * size, device=logits.device)
    place = place.view(channels, 1, size)
    bits = _mixed(_mixed(_mixed(seed & WORD) + step)[:, None] + place)
    uniform = ((bits >> (32 - MANTISSA)).float() + 0.5) / (1 << MANTISSA)
    gumbel = -torch.log(-torch.log(uniform))
    torch.addcmul(logits, gumbel, temperature[:, None], out=out)


def _mixed(x: Tensor) -> Tensor:
    """A hash of 32-bit words held in int64."""
    x = x & WORD
    for _ in range(2):
        x = ((x >> 16) ^ x) * MIX & WORD
    return (x >> 16) ^ x
