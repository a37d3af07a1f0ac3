"""The network of the asr decoder: states of the encoder first, then text ids, one row a step.

The states take the place of embeddings in the prefill; then every row is an id. The last one is forced to the
end id, for random weights would never say it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.device import Buffer
from sample_engine.models.sizes import StackSize
from sample_engine.models.stack_probes import product_probe, stack_probes
from sample_engine.models.transformer import Places, Stack, make_stack
from sample_engine.models.weights import Weights
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe

FOCUS, QUIET = 8.0, 0.3
"""Attention is sharp, and ids are small beside what they attend to: so what is heard decides what is written.
With ordinary random weights most audios get the same text.
"""


@dataclass(frozen=True, slots=True)
class AsrDecoder:
    """Weights, and the cache of all slots."""

    size: StackSize
    table: Buffer
    stack: Stack
    norm: tuple[Buffer, Buffer]
    head: Buffer

    def logits(self, ops: Ops, rows: Buffer, places: Places) -> Buffer:
        """Ids (slots, 1) of the first slots to (slots, ids)."""
        x = self.stack.forward(ops, ops.embed([self.table], rows), 0, rows.shape[0], places)
        return ops.linear(ops.layer_norm(x, *self.norm), self.head)


def make_asr_decoder(weights: Weights, size: StackSize, slots: int) -> AsrDecoder:
    """With seeded weights and an empty cache. The table has one row more than there are ids: the start."""
    return AsrDecoder(
        size=size,
        table=weights.normal("table", (size.text_ids + 1, size.width), QUIET),
        stack=make_stack(weights, size, slots, FOCUS),
        norm=weights.norm("norm", size.width),
        head=weights.matrix("head", size.width, size.text_ids),
    )


def asr_probes(decoder: AsrDecoder) -> list[Probe]:
    """Every product, norm and attention of a step, for the check at start."""
    return [*stack_probes(decoder.stack, decoder.size), product_probe("head", decoder.head)]
