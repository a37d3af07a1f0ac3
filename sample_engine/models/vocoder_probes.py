"""The products and the attention of the vocoder at its own shapes, for the check at start.

A row of `primitives.promise` is an item here: all its frames, in one tile.
"""

from __future__ import annotations

from collections.abc import Iterator

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32
from sample_engine.models.vocoder import Vocoder
from sample_engine.models.vocoder_sizes import VocoderSize
from sample_engine.models.weights import Weights
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe


def vocoder_probes(vocoder: Vocoder, frames: int) -> list[Probe]:
    """Of chunks of this length."""
    size = vocoder.size
    return [
        *(_product(name, weight, frames * rate) for name, weight, rate in _weights(vocoder)),
        Probe(f"attention of {frames}", frames * size.width, lambda ops, x: _attention(ops, x, size, frames)),
    ]


def _weights(vocoder: Vocoder) -> Iterator[tuple[str, Buffer, int]]:
    """Every shape of weights once, and the steps a frame at which it is used."""
    layer, rate = vocoder.layers[0], 1
    yield from (("first", vocoder.first.weight, 1), ("query", layer.query, 1))
    yield from (("up", layer.up, 1), ("down", layer.down, 1))
    for index, upsampling in enumerate(vocoder.upsampling):
        yield f"upsampling {index}", upsampling.weight, rate
        rate *= upsampling.factor
        yield f"unit {index}, time", upsampling.units[0].time.weight, rate
        yield f"unit {index}, channels", upsampling.units[0].channels, rate
    yield "last", vocoder.last.weight, rate


def _product(name: str, weight: Buffer, steps: int) -> Probe:
    def run(ops: Ops, x: Buffer) -> Buffer:
        rows = x.view(x.shape[0] * steps, weight.shape[0])
        return Ops(ops.stream, steps).linear(rows, weight).view(x.shape[0], steps * weight.shape[1])

    return Probe(f"{name} of {steps}", steps * weight.shape[0], run)


def _attention(ops: Ops, x: Buffer, size: VocoderSize, frames: int) -> Buffer:
    """Every item over a cache of its own, and all caches equal."""
    many, width, places = x.shape[0] * size.heads, size.width // size.heads, size.positions + 1
    one = Weights(ops.stream, 0, "probe.").normal("cache", (places, width), 1.0)
    keys = ops.stream.empty((many, places, width), FLOAT32)
    for item in range(many):
        ops.stream.launch(kernels.copy, (keys.narrow(0, item, 1).view(places, width), one))
    mask = ops.filled((many, frames, places), 0.0)
    attended = ops.attend(x.view(many, frames, width), keys, keys, mask)
    return attended.view(x.shape[0], frames * size.width)
