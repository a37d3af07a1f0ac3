"""The primitives of the tts decoder at its own shapes, for the check at start (`primitives.promise`)."""

from __future__ import annotations

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.ar_decoder import ArDecoder
from sample_engine.models.stack_probes import product_probe, stack_probes
from sample_engine.primitives import sampling
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe


def ar_probes(decoder: ArDecoder) -> list[Probe]:
    """Every product, norm, attention and draw of a step."""
    return [
        *stack_probes(decoder.stack, decoder.size),
        product_probe("text head", decoder.text_head),
        product_probe("code head", decoder.code_heads[0]),
        Probe("draw", decoder.size.code_ids, _draw),
    ]


def _draw(ops: Ops, x: Buffer) -> Buffer:
    """Noisy logits, all rows with one seed."""
    rows, width = x.shape
    zeros = ops.filled((rows,), 0.0, INT64)
    out = ops.stream.empty((1, rows, width), FLOAT32)
    inputs = (out, x.view(1, rows, width), zeros, zeros, ops.filled((rows,), 1.0))
    ops.stream.launch(sampling.add_noise, inputs, (0,))
    return out.view(rows, width)
