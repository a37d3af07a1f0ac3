"""The network of the encoder: windows of feature frames in, states for the asr decoder out.

Three convolutions of stride 2, then transformer layers in which every position of a window sees all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.device import Buffer, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.asr_sizes import (
    FRAMES_A_WINDOW,
    HALVINGS,
    POSITIONS_A_WINDOW,
    AsrSize,
    EncoderSize,
)
from sample_engine.models.transformer import Layer, make_layer
from sample_engine.models.weights import Weights
from sample_engine.primitives import whole_windows
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe
from sample_engine.primitives.whole_windows import TAPS, add_to_each, every_second


@dataclass(frozen=True, slots=True)
class Encoder:
    """Weights. `table` tells positions of a window apart."""

    size: EncoderSize
    convolutions: list[Buffer]
    table: Buffer
    layers: list[Layer]
    norm: tuple[Buffer, Buffer]
    output: Buffer

    def forward(self, stream: Stream, frames: Buffer, lengths: Buffer) -> Buffer:
        """(windows, FRAMES_A_WINDOW, bands), and how many positions of each are no padding, to
        (windows x POSITIONS_A_WINDOW, width of the decoder).
        """
        return self.attended(stream, self.convolved(stream, frames), lengths)

    def convolved(self, stream: Stream, frames: Buffer) -> Buffer:
        """To (windows, positions, width)."""
        x = frames
        for weight in self.convolutions:
            windows, steps, width = x.shape[0], x.shape[1] // 2, weight.shape[1]
            ops = Ops(stream, steps)
            flat = ops.run(every_second, (windows, steps, weight.shape[0]), x)
            x = ops.relu(ops.linear(flat.view(windows * steps, weight.shape[0]), weight))
            x = x.view(windows, steps, width)
        return Ops(stream).run(add_to_each, x.shape, x, self.table)

    def attended(self, stream: Stream, x: Buffer, lengths: Buffer) -> Buffer:
        """Through the layers, to the decoder's width."""
        ops, (windows, positions, width) = Ops(stream, POSITIONS_A_WINDOW), x.shape
        shape = (windows, self.size.heads, positions, positions)
        mask = ops.run(whole_windows.length_mask, shape, lengths)
        mask = mask.view(windows * self.size.heads, positions, positions)
        x = x.view(windows * positions, width)
        for layer in self.layers:
            x = layer.forward_whole(ops, x, windows, mask)
        return ops.linear(ops.layer_norm(x, *self.norm), self.output)


def make_encoder(weights: Weights, size: AsrSize) -> Encoder:
    """With seeded weights."""
    own, width = size.encoder, size.encoder.width
    sides = [(TAPS * own.bands, width), *[(TAPS * width, width)] * (HALVINGS - 1)]
    return Encoder(
        size=own,
        convolutions=[weights.matrix(f"convolution{index}", *both) for index, both in enumerate(sides)],
        table=weights.normal("table", (POSITIONS_A_WINDOW, width), 1.0),
        layers=[
            make_layer(weights.under(f"layer{index}"), width, own.heads, own.hidden)
            for index in range(own.layers)
        ],
        norm=weights.norm("norm", width),
        output=weights.matrix("output", width, size.decoder.width),
    )


def encoder_probes(encoder: Encoder) -> list[Probe]:
    """For the check at start; a row of `primitives.promise` is a window."""
    bands, width = encoder.size.bands, encoder.size.width

    def convolve(ops: Ops, x: Buffer) -> Buffer:
        frames = x.view(x.shape[0], FRAMES_A_WINDOW, bands)
        return encoder.convolved(ops.stream, frames).view(x.shape[0], POSITIONS_A_WINDOW * width)

    def attend(ops: Ops, x: Buffer) -> Buffer:
        windows = x.shape[0]
        lengths = ops.filled((windows,), POSITIONS_A_WINDOW - 1, INT64)
        states = encoder.attended(ops.stream, x.view(windows, POSITIONS_A_WINDOW, width), lengths)
        return states.view(windows, POSITIONS_A_WINDOW * states.shape[1])

    return [
        Probe("convolutions", FRAMES_A_WINDOW * bands, convolve),
        Probe("layers", POSITIONS_A_WINDOW * width, attend),
    ]
