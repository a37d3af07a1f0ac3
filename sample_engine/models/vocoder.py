"""The network of the vocoder: 12 codes a frame in, 1920 samples a frame out, as a stream.

Twelve embeddings, summed; a causal convolution; transformer layers over a ring of keys and values; then
upsampling (each step becomes a few, with fewer channels) with residual units of causal convolutions; at the
end every step is a patch of samples.

A step works on a chunk of equal length of any slots, named in a buffer: the launches are the same whoever
they are. It changes what a slot remembers in its very last kernels (`commit`), which allocate nothing. So a
step that memory runs out for leaves no trace, and can be run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sample_engine.device import Buffer, Stream
from sample_engine.dtypes import BOOL, FLOAT32, INT64
from sample_engine.kernel import kernel
from sample_engine.models.sizes import CODEBOOKS
from sample_engine.models.transformer import Cache, Layer, Places, make_cache, make_layer
from sample_engine.models.vocoder_sizes import SAMPLES_A_FRAME, VocoderSize
from sample_engine.models.weights import Weights
from sample_engine.primitives import convolution, kernels
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.ring import move_on, ring_places

FULL_SCALE = 32767.0
"""The largest sample of 16 bit."""
LOUDNESS = 0.1
"""Of the last weights, so that random samples are rarely limited."""


@kernel("bn:int16 bn")
def to_pcm(out: Tensor, x: Tensor) -> None:
    """Any number to 16 bit, softly limited."""
    out.copy_(torch.tanh(x).mul_(FULL_SCALE).round_())


@kernel("s:int64")
def start_slot(offset: Tensor, slot: int) -> None:
    """A slot at the beginning of its stream: everything else that it remembers is void by that."""
    offset[slot] = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a step is about: `items` slots (which of them are new), each with `frames` frames; and what they
    will remember.
    """

    stream: Stream
    slots: Buffer
    offset: Buffer
    new: Buffer
    frames: int
    tails: list[tuple[Buffer, Buffer]] = field(default_factory=list)

    @property
    def items(self) -> int:
        return self.slots.shape[0]

    def ops(self, rate: int) -> Ops:
        """At `rate` steps a frame; all steps of an item are one tile."""
        return Ops(self.stream, self.frames * rate)

    def commit(self) -> None:
        """Put in place what the slots remember."""
        for carry, tail in self.tails:
            width = carry.shape[1] * carry.shape[2]
            rows, values = carry.view(carry.shape[0], width), tail.view(self.items, width)
            self.stream.launch(kernels.put_rows, (rows, self.slots, values))
        self.stream.launch(move_on, (self.offset, self.slots), (self.frames,))


@dataclass(frozen=True, slots=True)
class Convolution:
    """`carry`: (slots, taps - 1, channels)."""

    weight: Buffer
    carry: Buffer

    def forward(self, chunk: Chunk, x: Buffer, rate: int) -> Buffer:
        """(items x steps, channels) to the same with other channels."""
        ops, (_, steps, channels) = chunk.ops(rate), self.carry.shape
        x = x.view(chunk.items, chunk.frames * rate, channels)
        shape = (chunk.items, steps, channels)
        before = ops.run(convolution.recall, shape, self.carry, chunk.slots, chunk.new)
        chunk.tails.append((self.carry, ops.run(convolution.tail, shape, x, before)))
        out = ops.causal_convolution(x, self.weight, before)
        return out.view(chunk.items * chunk.frames * rate, self.weight.shape[1])


@dataclass(frozen=True, slots=True)
class Unit:
    """A convolution over time and one over channels, added to their input."""

    time: Convolution
    channels: Buffer

    def forward(self, chunk: Chunk, x: Buffer, rate: int) -> Buffer:
        ops = chunk.ops(rate)
        hidden = ops.relu(self.time.forward(chunk, ops.relu(x), rate))
        return ops.add(x, ops.linear(hidden, self.channels))


@dataclass(frozen=True, slots=True)
class Upsampling:
    """Every step becomes `factor` steps."""

    factor: int
    weight: Buffer
    units: list[Unit]

    def forward(self, chunk: Chunk, x: Buffer, rate: int) -> Buffer:
        """Of `rate` steps a frame, to `rate` x `factor`."""
        wide = chunk.ops(rate).linear(x, self.weight)
        x = wide.view(wide.shape[0] * self.factor, wide.shape[1] // self.factor)
        for unit in self.units:
            x = unit.forward(chunk, x, rate * self.factor)
        return x


@dataclass(frozen=True, slots=True)
class Vocoder:
    """Weights, and what all slots remember. The last slot is nobody's: items that are not live go there."""

    size: VocoderSize
    offset: Buffer
    tables: list[Buffer]
    first: Convolution
    layers: list[Layer]
    caches: list[Cache]
    norm: tuple[Buffer, Buffer]
    upsampling: list[Upsampling]
    last: Convolution

    @property
    def nobody(self) -> int:
        return self.offset.shape[0] - 1

    def step(self, stream: Stream, codes: Buffer, slots: Buffer, pcm: Buffer) -> None:
        """Codes (items x frames, 12) of these slots to samples (items, samples)."""
        new = Ops(stream).run(convolution.at_start, slots.shape, slots, self.offset, dtype=BOOL)
        chunk = Chunk(stream, slots, self.offset, new, codes.shape[0] // slots.shape[0])
        x = self._frames(chunk, codes)
        rate = 1
        for upsampling in self.upsampling:
            x = upsampling.forward(chunk, x, rate)
            rate *= upsampling.factor
        samples = self.last.forward(chunk, x, rate).view(chunk.items, chunk.frames * SAMPLES_A_FRAME)
        stream.launch(to_pcm, (pcm, samples))
        chunk.commit()

    def clear(self, stream: Stream) -> None:
        """All slots at their beginning."""
        stream.launch(kernels.fill, (self.offset,), (0.0,))

    def _frames(self, chunk: Chunk, codes: Buffer) -> Buffer:
        """The part at the frame rate."""
        ops = chunk.ops(1)
        places, caches = self._places(chunk)
        x = self.first.forward(chunk, ops.embed(self.tables, codes), 1)
        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer.forward(ops, x, chunk.items, cache, places, lambda kept: ops.take(kept, caches))
        return ops.layer_norm(x, *self.norm)

    def _places(self, chunk: Chunk) -> tuple[Places, Buffer]:
        """Where keys and values go, and which caches belong to the items."""
        stream, heads = chunk.stream, self.size.heads
        write = stream.empty((chunk.items, heads, chunk.frames), INT64)
        mask = stream.empty((chunk.items, heads, chunk.frames, self.size.positions + 1), FLOAT32)
        caches = stream.empty((chunk.items, heads), INT64)
        buffers = (write, mask, caches, chunk.slots, self.offset)
        stream.launch(ring_places, buffers, (self.size.window,))
        many = chunk.items * heads
        places = Places(write.view(many * chunk.frames), mask.view(many, chunk.frames, mask.shape[3]))
        return places, caches.view(many)


def make_vocoder(weights: Weights, size: VocoderSize, slots: int) -> Vocoder:
    """With seeded weights and nothing remembered, for so many slots and one that is nobody's."""
    ops, all_slots, width = Ops(weights.stream), slots + 1, size.width
    upsampling = _upsampling(weights, size, all_slots)
    channels = size.upsampling[-1][1]
    return Vocoder(
        size=size,
        offset=ops.filled((all_slots,), 0.0, INT64),
        tables=[weights.normal(f"table{book}", (size.code_ids, width), 1.0) for book in range(CODEBOOKS)],
        first=_convolution(weights.under("first"), size.taps, (width, width), all_slots),
        layers=[
            make_layer(weights.under(f"layer{index}"), width, size.heads, size.hidden)
            for index in range(size.layers)
        ],
        caches=[
            make_cache(ops, all_slots, size.heads, size.positions, width // size.heads)
            for _ in range(size.layers)
        ],
        norm=weights.norm("norm", width),
        upsampling=upsampling,
        last=_convolution(weights.under("last"), size.taps, (channels, size.patch), all_slots, LOUDNESS),
    )


def _upsampling(weights: Weights, size: VocoderSize, slots: int) -> list[Upsampling]:
    made, before = [], size.width
    for index, (factor, channels) in enumerate(size.upsampling):
        own = weights.under(f"upsampling{index}")
        units = [
            _unit(own.under(f"unit{number}"), size.taps, channels, slots) for number in range(size.units)
        ]
        made.append(Upsampling(factor, own.matrix("weight", before, factor * channels), units))
        before = channels
    return made


def _unit(weights: Weights, taps: int, channels: int, slots: int) -> Unit:
    time = _convolution(weights.under("time"), taps, (channels, channels), slots)
    return Unit(time, weights.matrix("channels", channels, channels))


def _convolution(
    weights: Weights, taps: int, sides: tuple[int, int], slots: int, gain: float = 1.0
) -> Convolution:
    channels, out = sides
    rows = taps * channels
    carry = Ops(weights.stream).filled((slots, taps - 1, channels), 0.0)
    return Convolution(weights.normal("weight", (rows, out), gain * rows**-0.5), carry)
