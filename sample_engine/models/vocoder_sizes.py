"""How large the vocoders are.

As in real codecs of 12.5 frames a second, most layers run at the frame rate, where there is little to do per
kernel; few channels are left where there are many steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sample_engine.models.sizes import AR_SIZES

SAMPLE_RATE_HZ = 24_000
SAMPLES_A_FRAME = 1920
"""80 ms: 12.5 frames a second."""
ALIGN = 16
"""Numbers of positions are multiples of this: with odd sides BLAS treats rows differently by place."""


@dataclass(frozen=True, slots=True)
class VocoderSize:
    """`window`: frames that attention sees. `longest`: frames of the longest chunk. `taps`: steps that a
    convolution sees. `upsampling`: by which factor, and to how many channels; what is then missing to
    SAMPLES_A_FRAME is the patch of samples that every step ends as. `units` follow every upsampling.
    """

    width: int
    heads: int
    layers: int
    hidden: int
    window: int
    longest: int
    taps: int
    upsampling: tuple[tuple[int, int], ...]
    units: int
    code_ids: int

    @property
    def patch(self) -> int:
        """Samples of one step at the highest rate."""
        return SAMPLES_A_FRAME // prod(factor for factor, _ in self.upsampling)

    @property
    def positions(self) -> int:
        """Of a ring that has room for a window and a chunk; with the spare one, a multiple of ALIGN."""
        return -(-(self.window + self.longest) // ALIGN) * ALIGN - 1


VOCODER_SIZES = {
    "tiny": VocoderSize(
        width=16,
        heads=2,
        layers=2,
        hidden=32,
        window=6,
        longest=100,
        taps=3,
        upsampling=((4, 16), (5, 16)),
        units=1,
        code_ids=AR_SIZES["tiny"].code_ids,
    ),
    "small": VocoderSize(
        width=64,
        heads=2,
        layers=8,
        hidden=128,
        window=25,
        longest=100,
        taps=3,
        upsampling=((4, 32), (5, 16), (2, 16)),
        units=2,
        code_ids=AR_SIZES["small"].code_ids,
    ),
    "large": VocoderSize(
        width=1024,
        heads=16,
        layers=12,
        hidden=4096,
        window=125,
        longest=100,
        taps=7,
        upsampling=((8, 512), (5, 256), (4, 128)),
        units=3,
        code_ids=AR_SIZES["large"].code_ids,
    ),
}
"""The second half of the tts pipeline; its codes are the decoder's."""
