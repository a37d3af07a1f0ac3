"""Primitives as functions: each allocates its output and launches one kernel.

This is what model code calls. In a capture the outputs come from the pool that all graphs of a stream share;
in eager mode they return to the stream's pool when the model drops them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sample_engine.device import Buffer, Scalar, Shape, Stream
from sample_engine.dtypes import FLOAT32, DType
from sample_engine.kernel import Kernel
from sample_engine.primitives import attention, convolution, kernels


@dataclass(frozen=True, slots=True)
class Ops:
    """On one stream; `tile_rows` are the rows that a product multiplies in one call."""

    stream: Stream
    tile_rows: int = kernels.ROW_TILE

    def run(self, kernel: Kernel, shape: Shape, *inputs: Buffer, dtype: DType = FLOAT32) -> Buffer:
        """Launch a kernel with a new output in front of its inputs."""
        out = self.stream.empty(shape, dtype)
        self.stream.launch(kernel, (out, *inputs))
        return out

    def linear(self, x: Buffer, weight: Buffer) -> Buffer:
        out = self.stream.empty((x.shape[0], weight.shape[1]), FLOAT32)
        self.linear_into(out, x, weight)
        return out

    def linear_into(self, out: Buffer, x: Buffer, weight: Buffer) -> None:
        self.stream.launch(kernels.linear, (out, x, weight), (self.tile_rows,))

    def layer_norm(self, x: Buffer, gain: Buffer, bias: Buffer) -> Buffer:
        return self.run(kernels.layer_norm, x.shape, x, gain, bias)

    def add(self, a: Buffer, b: Buffer) -> Buffer:
        return self.run(kernels.add, a.shape, a, b)

    def relu(self, x: Buffer) -> Buffer:
        return self.run(kernels.relu, x.shape, x)

    def embed(self, tables: list[Buffer], ids: Buffer) -> Buffer:
        """The sum of one embedding a channel; ids are (rows, channels)."""
        total = self._embedded(tables[0], ids, 0)
        for channel, table in enumerate(tables[1:], 1):
            total = self.add(total, self._embedded(table, ids, channel))
        return total

    def split_heads(self, x: Buffer, items: int, heads: int) -> Buffer:
        """(items x rows, width) to (items, heads, rows, head width); one row needs no copy."""
        rows, width = x.shape[0] // items, x.shape[1]
        shape = (items, heads, rows, width // heads)
        if rows == 1:
            return x.view(*shape)
        return self.run(attention.split_heads, shape, x.view(items, rows, width))

    def merge_heads(self, x: Buffer, items: int) -> Buffer:
        """Back again, from (items x heads, rows, head width)."""
        heads, rows, width = x.shape[0] // items, x.shape[1], x.shape[2]
        if rows == 1:
            return x.view(items, heads * width)
        shape = (items, rows, heads * width)
        merged = self.run(attention.merge_heads, shape, x.view(items, heads, rows, width))
        return merged.view(items * rows, heads * width)

    def attend(self, queries: Buffer, keys: Buffer, values: Buffer, mask: Buffer) -> Buffer:
        """Softmax attention: (n, t, d) over (n, p, d), with a mask (n, t, p) that is added."""
        logits = self.stream.empty(mask.shape, FLOAT32)
        scale: Scalar = queries.shape[2] ** -0.5
        self.stream.launch(attention.scores, (logits, queries, keys, mask), (scale,))
        weights = self.run(attention.softmax, mask.shape, logits)
        return self.run(attention.mix, queries.shape, weights, values)

    def causal_convolution(self, x: Buffer, weight: Buffer, before: Buffer) -> Buffer:
        """(items, time, channels) to (items, time, channels out); `before` are the steps that precede `x`."""
        items, time, _ = x.shape
        flat = self.run(convolution.windows, (items, time, weight.shape[0]), x, before)
        out = self.linear(flat.view(items * time, weight.shape[0]), weight)
        return out.view(items, time, weight.shape[1])

    def take(self, x: Buffer, places: Buffer) -> Buffer:
        """Entries of the first dimension."""
        flat = x.view(x.shape[0], prod(x.shape[1:]))
        shape = (places.shape[0], flat.shape[1])
        return self.run(kernels.take_rows, shape, flat, places).view(places.shape[0], *x.shape[1:])

    def filled(self, shape: Shape, value: float, dtype: DType = FLOAT32) -> Buffer:
        """A buffer of one value."""
        out = self.stream.empty(shape, dtype)
        self.stream.launch(kernels.fill, (out,), (value,))
        return out

    def _embedded(self, table: Buffer, ids: Buffer, channel: int) -> Buffer:
        out = self.stream.empty((ids.shape[0], table.shape[1]), FLOAT32)
        self.stream.launch(kernels.embed, (out, table, ids), (channel,))
        return out


def size_bytes(buffer: Buffer) -> int:
    """Of its elements."""
    return prod(buffer.shape) * buffer.dtype.item_bytes
