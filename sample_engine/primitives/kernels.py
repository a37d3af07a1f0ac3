"""Kernels of every network: products, norms, sums, and the rows that go in and out.

Whatever multiplies matrices works in tiles of rows, each of them the same call on the same shape, so a row
meets the same arithmetic in a launch of one tile and in one of sixteen. In decode a tile is any `ROW_TILE`
rows, in the vocoder all rows of an item. On CUDA the whole product is one call: tiles would be launches
there, and the promise is made at equal shape only (see `promise`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel

ROW_TILE = 4
"""Rows of one call. Products of 1 or 2 rows take other paths in BLAS libraries."""
SMALL_PRODUCT = 400
"""Multiplications of a tile below which torch.bmm has a loop of its own on a CPU, however many tiles
(`bmm_out_or_baddbmm_` in PyTorch's LinearAlgebra.cpp); torch.mm calls BLAS for them, too."""
NORM_EPSILON = 1e-5


@kernel("bn bk kn")
def linear(out: Tensor, x: Tensor, weight: Tensor, tile_rows: int) -> None:
    """out = x @ weight; the number of rows is a multiple of `tile_rows`.

    Give weights sides that are multiples of eight: with small odd ones, or a single column, BLAS treats rows
    differently by place. A small tile is multiplied in the same loop when it is the only one.
    """
    rows, columns = weight.shape
    tiles = len(x) // tile_rows
    if x.is_cuda or (tiles == 1 and tile_rows * rows * columns >= SMALL_PRODUCT):
        torch.mm(x, weight, out=out)
    else:
        x, out = x.view(tiles, tile_rows, rows), out.view(tiles, tile_rows, columns)
        torch.bmm(x, weight.expand(tiles, rows, columns), out=out)


@kernel("bd bd d d")
def layer_norm(out: Tensor, x: Tensor, gain: Tensor, bias: Tensor) -> None:
    out.copy_(torch.nn.functional.layer_norm(x, gain.shape, gain, bias, NORM_EPSILON))


@kernel("... ... ...")
def add(out: Tensor, a: Tensor, b: Tensor) -> None:
    torch.add(a, b, out=out)


@kernel("... ...")
def relu(out: Tensor, x: Tensor) -> None:
    torch.clamp_min(x, 0.0, out=out)


@kernel("... ...")
def tanh(out: Tensor, x: Tensor) -> None:
    torch.tanh(x, out=out)


@kernel("bd vd bc:int64")
def embed(out: Tensor, table: Tensor, ids: Tensor, channel: int) -> None:
    """The row of one channel's id; the last row of the table stands for every higher id."""
    rows = ids[:, channel].clamp(max=len(table) - 1)
    torch.index_select(table, 0, rows, out=out)


@kernel("nd sd n:int64")
def take_rows(out: Tensor, x: Tensor, rows: Tensor) -> None:
    torch.index_select(x, 0, rows, out=out)


@kernel("sd n:int64 nd")
def put_rows(x: Tensor, rows: Tensor, values: Tensor) -> None:
    x.index_copy_(0, rows, values)


@kernel("...:any ...:any")
def copy(out: Tensor, x: Tensor) -> None:
    out.copy_(x)


@kernel("...:any")
def fill(out: Tensor, value: float) -> None:
    out.fill_(value)


@kernel("...")
def normal(out: Tensor, seed: int, scale: float) -> None:
    """Normal numbers of a seed, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    out.copy_(torch.randn(out.shape, generator=generator).mul_(scale))
