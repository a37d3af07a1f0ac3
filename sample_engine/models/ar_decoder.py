"""The network of the tts decoder: rows of 13 channels in, rows of 13 channels out.

One embedding a channel, summed; transformer layers over a cache; one head a channel. The text channel of the
last row is forced to the end id: random weights would never say it, so the number of steps is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32
from sample_engine.models.sizes import CODEBOOKS, DecoderSize
from sample_engine.models.transformer import Places, Stack, make_stack
from sample_engine.models.weights import Weights
from sample_engine.primitives.ops import Ops


@dataclass(frozen=True, slots=True)
class ArDecoder:
    """Weights, and the cache of all slots."""

    size: DecoderSize
    tables: list[Buffer]
    stack: Stack
    norm: tuple[Buffer, Buffer]
    text_head: Buffer
    code_heads: list[Buffer]

    def hidden(self, ops: Ops, rows: Buffer, first_slot: int, slots: int, places: Places) -> Buffer:
        """Rows of ids (items x rows, 13) of consecutive slots through all layers; their keys and values go
        into the cache.
        """
        return self.stack.forward(ops, ops.embed(self.tables, rows), first_slot, slots, places)

    def logits(self, ops: Ops, x: Buffer) -> tuple[Buffer, Buffer]:
        """Of the text channel (rows, ids), and of the codebooks (12, rows, ids)."""
        x = ops.layer_norm(x, *self.norm)
        codes = ops.stream.empty((CODEBOOKS, x.shape[0], self.size.code_ids), FLOAT32)
        for channel, head in enumerate(self.code_heads):
            out = codes.narrow(0, channel, 1).view(x.shape[0], self.size.code_ids)
            ops.linear_into(out, x, head)
        return ops.linear(x, self.text_head), codes


def make_ar_decoder(weights: Weights, size: DecoderSize, slots: int) -> ArDecoder:
    """With seeded weights and an empty cache."""
    return ArDecoder(
        size=size,
        tables=_tables(weights, size),
        stack=make_stack(weights, size, slots),
        norm=weights.norm("norm", size.width),
        text_head=weights.matrix("text_head", size.width, size.text_ids),
        code_heads=[
            weights.matrix(f"code_head{index}", size.width, size.code_ids) for index in range(CODEBOOKS)
        ],
    )


def prompt_row(text_id: int, size: DecoderSize) -> Sequence[int]:
    """A row of a prompt: its codes are the one id that is never sampled."""
    return (text_id, *[size.code_ids] * CODEBOOKS)


def _tables(weights: Weights, size: DecoderSize) -> list[Buffer]:
    """Each has one row more than there are ids: the end id in the text table, no code in the others."""
    counts = [size.text_ids, *[size.code_ids] * CODEBOOKS]
    return [
        weights.normal(f"table{channel}", (count + 1, size.width), 1.0)
        for channel, count in enumerate(counts)
    ]
