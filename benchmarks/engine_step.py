"""A step of a small decoder in eager mode: kernels of a microsecond or so, an output allocated for each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sample_engine.device import Buffer, Shape, Stream
from sample_engine.dtypes import FLOAT32
from sample_engine.kernel import Kernel, kernel

ROWS, WIDTH = 4, 64
KERNELS_A_LAYER = 13


@kernel("...")
def ramp(out: Tensor, scale: float) -> None:
    """Different numbers everywhere, between -scale and scale."""
    torch.mul(torch.arange(out.numel()).sin().view(out.shape), scale, out=out)


@kernel("bd bd")
def square(out: Tensor, a: Tensor) -> None:
    torch.mul(a, a, out=out)


@kernel("b1 bd")
def row_mean(out: Tensor, a: Tensor) -> None:
    torch.mean(a, dim=-1, keepdim=True, out=out)


@kernel("... ...")
def inverse_root(out: Tensor, a: Tensor) -> None:
    torch.rsqrt(a, out=out)


@kernel("bd bd b1")
def scale_rows(out: Tensor, a: Tensor, factors: Tensor) -> None:
    torch.mul(a, factors, out=out)


@kernel("bn bk kn")
def matmul(out: Tensor, a: Tensor, weight: Tensor) -> None:
    torch.mm(a, weight, out=out)


@kernel("...d ...d")
def softmax(out: Tensor, a: Tensor) -> None:
    torch.softmax(a, -1, out=out)


@kernel("... ... ...")
def multiply(out: Tensor, a: Tensor, b: Tensor) -> None:
    torch.mul(a, b, out=out)


@kernel("... ... ...")
def add(out: Tensor, a: Tensor, b: Tensor) -> None:
    torch.add(a, b, out=out)


@kernel("... ...")
def sigmoid(out: Tensor, a: Tensor) -> None:
    torch.sigmoid(a, out=out)


def filled(stream: Stream, shape: Shape, scale: float) -> Buffer:
    """A buffer of different numbers."""
    out = stream.empty(shape, FLOAT32)
    stream.launch(ramp, (out,), (scale,))
    return out


def decoder_step(stream: Stream, x: Buffer, weights: Sequence[Buffer]) -> Buffer:
    """One layer a weight, of KERNELS_A_LAYER kernels each: norm, gated mixing, projection, residual."""
    for weight in weights:
        x = _layer(stream, x, weight)
    return x


def _layer(stream: Stream, x: Buffer, weight: Buffer) -> Buffer:
    def run(function: Kernel, *inputs: Buffer, shape: Shape = x.shape) -> Buffer:
        out = stream.empty(shape, FLOAT32)
        stream.launch(function, (out, *inputs))
        return out

    mean = run(row_mean, run(square, x), shape=(ROWS, 1))
    normed = run(scale_rows, x, run(inverse_root, mean, shape=(ROWS, 1)))
    query, key = run(matmul, normed, weight), run(matmul, normed, weight)
    mixed = run(multiply, run(softmax, query), key)
    x = run(add, x, run(matmul, mixed, weight))
    gated = run(multiply, run(sigmoid, x), x)
    return run(add, gated, x)
