"""Small kernels for timing the engine's device, and a step made of them: a decoder of few rows."""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel

ROWS, WIDTH = 4, 64
LAYERS = 20
KERNELS_A_LAYER = 13


@kernel("...")
def fill(out: Tensor, value: float) -> None:
    out.fill_(value)


@kernel("...")
def ramp(out: Tensor, scale: float) -> None:
    """Different numbers everywhere, around 0."""
    torch.mul(torch.arange(out.numel()).sin().view(out.shape), scale, out=out)


@kernel("... ...")
def copy(out: Tensor, source: Tensor) -> None:
    out.copy_(source)


@kernel("...d ...d ...e")
def multiply(out: Tensor, a: Tensor, b: Tensor) -> None:
    torch.mul(a, b, out=out)


@kernel("... ... ...")
def add(out: Tensor, a: Tensor, b: Tensor) -> None:
    torch.add(a, b, out=out)


@kernel("b1 bd")
def mean_of_rows(out: Tensor, a: Tensor) -> None:
    torch.mean(a, dim=-1, keepdim=True, out=out)


@kernel("... ...")
def inverse_root(out: Tensor, a: Tensor) -> None:
    torch.rsqrt(a, out=out)


@kernel("bn bk kn")
def matmul(out: Tensor, a: Tensor, weight: Tensor) -> None:
    torch.mm(a, weight, out=out)


@kernel("... ...")
def sigmoid(out: Tensor, a: Tensor) -> None:
    torch.sigmoid(a, out=out)


@kernel("... ...")
def softmax(out: Tensor, a: Tensor) -> None:
    torch.softmax(a, -1, out=out)
