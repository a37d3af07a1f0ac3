"""Transformer layers over a cache that is written in place: for decode, prefill, and streaming; and without
one, for an encoder.

A forward handles `items` x rows at once: one row of many slots in decode, many rows of one slot in prefill.
All that differs lies in `Places`: where the new keys and values go, and which positions each row sees; and in
what part of a cache belongs to the items (`Seen`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.sizes import StackSize
from sample_engine.models.weights import Weights
from sample_engine.primitives.attention import (
    causal_rows,
    decode_mask,
    decode_places,
    first_places,
    write_cache,
)
from sample_engine.primitives.ops import Ops


@dataclass(frozen=True, slots=True)
class Places:
    """`write`: one place in the cache for each (item, head, row). `mask`: (items x heads, rows, positions +
    1), added to the scores.
    """

    write: Buffer
    mask: Buffer


Seen = Callable[[Buffer], Buffer]
"""Of the keys (or values) of all slots, those of the items: (items x heads, positions + 1, head width)."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values of one layer: (slots x heads, positions + 1, head width) each."""

    keys: Buffer
    values: Buffer


@dataclass(frozen=True, slots=True)
class Layer:
    """Pre-norm attention and a two-layer network, each added to its input."""

    heads: int
    attention_norm: tuple[Buffer, Buffer]
    query: Buffer
    key: Buffer
    value: Buffer
    output: Buffer
    hidden_norm: tuple[Buffer, Buffer]
    up: Buffer
    down: Buffer

    def forward(self, ops: Ops, x: Buffer, items: int, cache: Cache, places: Places, seen: Seen) -> Buffer:
        """`x` is (items x rows, width). New keys and values go into the cache before the items see it."""
        attended = self._attend(ops, ops.layer_norm(x, *self.attention_norm), items, cache, places, seen)
        return self._added(ops, x, attended)

    def forward_whole(self, ops: Ops, x: Buffer, items: int, mask: Buffer) -> Buffer:
        """The same without a cache: every row sees its item, as the mask (items x heads, rows, rows) says."""
        normed = ops.layer_norm(x, *self.attention_norm)
        query, key, value = (
            self._heads(ops, ops.linear(normed, weight), items)
            for weight in (self.query, self.key, self.value)
        )
        return self._added(ops, x, ops.merge_heads(ops.attend(query, key, value, mask), items))

    def _added(self, ops: Ops, x: Buffer, attended: Buffer) -> Buffer:
        x = ops.add(x, ops.linear(attended, self.output))
        hidden = ops.relu(ops.linear(ops.layer_norm(x, *self.hidden_norm), self.up))
        return ops.add(x, ops.linear(hidden, self.down))

    def _attend(self, ops: Ops, x: Buffer, items: int, cache: Cache, places: Places, seen: Seen) -> Buffer:
        query = self._heads(ops, ops.linear(x, self.query), items)
        for weight, kept in ((self.key, cache.keys), (self.value, cache.values)):
            rows = self._heads(ops, ops.linear(x, weight), items)
            flat = rows.view(places.write.shape[0], rows.shape[2])
            ops.stream.launch(write_cache, (kept, places.write, flat))
        attended = ops.attend(query, seen(cache.keys), seen(cache.values), places.mask)
        return ops.merge_heads(attended, items)

    def _heads(self, ops: Ops, x: Buffer, items: int) -> Buffer:
        """(items x rows, width) to (items x heads, rows, head width)."""
        split = ops.split_heads(x, items, self.heads)
        return split.view(items * self.heads, split.shape[2], split.shape[3])


@dataclass(frozen=True, slots=True)
class Stack:
    """The layers of a decoder, and the cache of all its slots."""

    heads: int
    layers: list[Layer]
    caches: list[Cache]

    def forward(self, ops: Ops, x: Buffer, first_slot: int, slots: int, places: Places) -> Buffer:
        """Rows (items x rows, width) of consecutive slots; their keys and values go into the cache."""

        def seen(cache: Buffer) -> Buffer:
            return cache.narrow(0, first_slot * self.heads, slots * self.heads)

        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer.forward(ops, x, slots, cache, places, seen)
        return x


def make_stack(weights: Weights, size: StackSize, slots: int, focus: float = 1.0) -> Stack:
    """With seeded weights and an empty cache."""
    ops, width = Ops(weights.stream), size.width
    return Stack(
        heads=size.heads,
        layers=[
            make_layer(weights.under(f"layer{index}"), width, size.heads, size.hidden, focus)
            for index in range(size.layers)
        ],
        caches=[
            make_cache(ops, slots, size.heads, size.positions, width // size.heads)
            for _ in range(size.layers)
        ],
    )


def make_layer(weights: Weights, width: int, heads: int, hidden: int, focus: float = 1.0) -> Layer:
    """A layer with seeded weights. The higher the `focus`, the fewer rows a row attends to."""
    return Layer(
        heads=heads,
        attention_norm=weights.norm("attention_norm", width),
        query=weights.normal("query", (width, width), focus * width**-0.5),
        key=weights.matrix("key", width, width),
        value=weights.matrix("value", width, width),
        output=weights.matrix("output", width, width),
        hidden_norm=weights.norm("hidden_norm", width),
        up=weights.matrix("up", width, hidden),
        down=weights.matrix("down", hidden, width),
    )


def make_cache(ops: Ops, slots: int, heads: int, positions: int, head_width: int) -> Cache:
    """Zeros; the extra position takes what must leave no trace."""
    shape = (slots * heads, positions + 1, head_width)
    return Cache(ops.filled(shape, 0.0), ops.filled(shape, 0.0))


@dataclass(frozen=True, slots=True)
class DecodePlaces:
    """Places of one row of each slot. What never changes is made once: the `first` place of each slot and
    head, and a `table` of what each position sees.
    """

    first: Buffer
    table: Buffer

    def of(self, ops: Ops, position: Buffer, live: Buffer) -> Places:
        """Of the first slots, as many as there are positions."""
        slots, heads, positions = position.shape[0], self.first.shape[1], self.table.shape[1]
        write = ops.stream.empty((slots, heads), INT64)
        first = self.first.narrow(0, 0, slots)
        ops.stream.launch(decode_places, (write, first, position, live), (positions - 1,))
        mask = ops.run(decode_mask, (slots, heads, positions), self.table, position)
        return Places(write.view(slots * heads), mask.view(slots * heads, 1, positions))


def make_decode_places(ops: Ops, slots: int, heads: int, positions: int) -> DecodePlaces:
    """For caches of `make_cache`."""
    first = ops.stream.empty((slots, heads), INT64)
    table = ops.stream.empty((positions + 1, positions + 1), FLOAT32)
    ops.stream.launch(first_places, (first,), (positions + 1,))
    ops.stream.launch(causal_rows, (table,))
    return DecodePlaces(first, table)
