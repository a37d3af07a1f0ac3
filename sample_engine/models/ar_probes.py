"""The primitives of the tts decoder at its own shapes, for the check at start (`primitives.promise`)."""

from __future__ import annotations

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.ar_decoder import ArDecoder
from sample_engine.models.sizes import DecoderSize
from sample_engine.models.weights import Weights
from sample_engine.primitives import kernels, sampling
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe


def ar_probes(decoder: ArDecoder) -> list[Probe]:
    """Every product, norm, attention and draw of a step."""
    size, layer = decoder.size, decoder.layers[0]
    products = {
        "query": layer.query,
        "output": layer.output,
        "up": layer.up,
        "down": layer.down,
        "text head": decoder.text_head,
        "code head": decoder.code_heads[0],
    }
    return [
        *(_product(name, weight) for name, weight in products.items()),
        Probe("layer norm", size.width, lambda ops, x: ops.layer_norm(x, *layer.hidden_norm)),
        Probe("attention", size.width, lambda ops, x: _attention(ops, x, size)),
        Probe("draw", size.code_ids, _draw),
    ]


def _product(name: str, weight: Buffer) -> Probe:
    return Probe(name, weight.shape[0], lambda ops, x: ops.linear(x, weight))


def _attention(ops: Ops, x: Buffer, size: DecoderSize) -> Buffer:
    """Every row over a cache of its own, and all caches equal."""
    items, heads = x.shape[0], size.heads
    caches = []
    for name in ("keys", "values"):
        one = Weights(ops.stream, 0, "probe.").normal(
            name, (heads, size.positions + 1, size.width // heads), 1.0
        )
        all_of_them = ops.stream.empty((items * heads, *one.shape[1:]), FLOAT32)
        for item in range(items):
            ops.stream.launch(kernels.copy, (all_of_them.narrow(0, item * heads, heads), one))
        caches.append(all_of_them)
    mask = ops.filled((items * heads, 1, size.positions + 1), 0.0)
    attended = ops.attend(x.view(items * heads, 1, size.width // heads), caches[0], caches[1], mask)
    return attended.view(items, size.width)


def _draw(ops: Ops, x: Buffer) -> Buffer:
    """Noisy logits, all rows with one seed."""
    rows, width = x.shape
    zeros = ops.filled((rows,), 0.0, INT64)
    out = ops.stream.empty((1, rows, width), FLOAT32)
    inputs = (out, x.view(1, rows, width), zeros, zeros, ops.filled((rows,), 1.0))
    ops.stream.launch(sampling.add_noise, inputs, (0,))
    return out.view(rows, width)
