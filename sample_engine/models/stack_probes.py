"""The primitives of any decoder's layers at its own shapes, for the check at start (`primitives.promise`)."""

from __future__ import annotations

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32
from sample_engine.models.sizes import StackSize
from sample_engine.models.transformer import Stack
from sample_engine.models.weights import Weights
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe


def stack_probes(stack: Stack, size: StackSize) -> list[Probe]:
    """Every product, norm and attention of a layer in a step of one row a slot."""
    layer = stack.layers[0]
    products = {"query": layer.query, "output": layer.output, "up": layer.up, "down": layer.down}
    return [
        *(product_probe(name, weight) for name, weight in products.items()),
        Probe("layer norm", size.width, lambda ops, x: ops.layer_norm(x, *layer.hidden_norm)),
        Probe("attention", size.width, lambda ops, x: _attention(ops, x, size)),
    ]


def product_probe(name: str, weight: Buffer) -> Probe:
    return Probe(name, weight.shape[0], lambda ops, x: ops.linear(x, weight))


def _attention(ops: Ops, x: Buffer, size: StackSize) -> Buffer:
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
