"""Attention over a cache of keys and values that is written in place.

A cache is one buffer of shape (slots x heads, positions + 1, head width). The last position is for rows that
must leave no trace: padding, and slots that are not live. Every read covers all positions and masks what is
not there, so the arithmetic of a row does not depend on how far the others have come.

Shapes: `n` = items x heads, `t` = rows of one item (1 in decode), `p` = positions + 1, `d` = head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.kernel import kernel

MASKED = float("-inf")


@kernel("bhtd btc")
def split_heads(out: Tensor, x: Tensor) -> None:
    """(items, rows, heads x width) to (items, heads, rows, width)."""
    items, heads, rows, width = out.shape
    out.copy_(x.view(items, rows, heads, width).transpose(1, 2))


@kernel("btc bhtd")
def merge_heads(out: Tensor, x: Tensor) -> None:
    items, heads, rows, width = x.shape
    out.view(items, rows, heads, width).copy_(x.transpose(1, 2))


@kernel("spd i:int64 id")
def write_cache(cache: Tensor, places: Tensor, rows: Tensor) -> None:
    """Put rows into the cache; a place counts over slots, heads and positions together."""
    cache.view(-1, cache.shape[2]).index_copy_(0, places, rows)


@kernel("ntp ntd npd ntp")
def scores(out: Tensor, queries: Tensor, keys: Tensor, mask: Tensor, scale: float) -> None:
    torch.baddbmm(mask, queries, keys.transpose(1, 2), alpha=scale, out=out)


@kernel("...p ...p")
def softmax(out: Tensor, x: Tensor) -> None:
    torch.softmax(x, -1, out=out)


@kernel("ntd ntp npd")
def mix(out: Tensor, weights: Tensor, values: Tensor) -> None:
    torch.bmm(weights, values, out=out)


@kernel("sh:int64")
def first_places(first: Tensor, positions: int) -> None:
    """Where the cache of each slot and head begins."""
    torch.arange(0, first.numel() * positions, positions, out=first.view(-1))


@kernel("qp")
def causal_rows(table: Tensor) -> None:
    """Row q of a mask in which position q sees itself and all before."""
    table.fill_(MASKED).triu_(1)


@kernel("bh:int64 bh:int64 b:int64 b:bool")
def decode_places(places: Tensor, first: Tensor, position: Tensor, live: Tensor, last: int) -> None:
    """Where each slot writes: at its position, or in the last one if it is not live."""
    torch.add(first, torch.where(live, position, last)[:, None], out=places)


@kernel("bhp qp b:int64")
def decode_mask(mask: Tensor, table: Tensor, position: Tensor) -> None:
    """What each slot sees, from the table of `causal_rows`."""
    mask.copy_(table.index_select(0, position)[:, None])


@kernel("ht:int64 htp")
def prefill_places(places: Tensor, mask: Tensor, slot: int, start: int, rows: int) -> None:
    """The same for consecutive positions of one slot; rows from `rows` on are padding."""
    heads, tall, positions = mask.shape
    first = torch.arange(slot * heads, (slot + 1) * heads, device=mask.device)[:, None] * positions
    order = torch.arange(tall, device=mask.device)
    at = torch.where(order < rows, order + start, positions - 1)
    torch.add(first, at, out=places)
    unseen = torch.arange(positions, device=mask.device) > (order + start)[:, None]
    mask.zero_().masked_fill_(unseen, MASKED)
