"""How large the networks of the asr pipeline are, and how audio becomes positions.

As in Qwen3-ASR, a feature frame is 10 ms, three convolutions leave a position every 80 ms, and the encoder
works in windows that do not see each other. So a launch is some number of equal windows, whoever they belong
to and however long each audio is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.models.sizes import StackSize

SAMPLE_RATE_HZ = 16_000
HOP_SAMPLES = 160
"""Between two frames: 10 ms."""
HALVINGS = 3
FRAMES_A_POSITION = 1 << HALVINGS
POSITIONS_A_WINDOW = 16
FRAMES_A_WINDOW = POSITIONS_A_WINDOW * FRAMES_A_POSITION
"""1.28 s."""


@dataclass(frozen=True, slots=True)
class EncoderSize:
    """`bands` of a frame's spectrum come in."""

    bands: int
    width: int
    heads: int
    layers: int
    hidden: int


@dataclass(frozen=True, slots=True)
class AsrSize:
    """Both networks."""

    encoder: EncoderSize
    decoder: StackSize


ASR_SIZES = {
    "tiny": AsrSize(
        EncoderSize(bands=8, width=16, heads=2, layers=1, hidden=32),
        StackSize(width=16, heads=2, layers=2, hidden=32, positions=63, text_ids=64),
    ),
    "small": AsrSize(
        EncoderSize(bands=40, width=96, heads=3, layers=16, hidden=192),
        StackSize(width=128, heads=2, layers=6, hidden=512, positions=255, text_ids=256),
    ),
    "large": AsrSize(
        EncoderSize(bands=128, width=1024, heads=16, layers=24, hidden=4096),
        StackSize(width=1024, heads=16, layers=24, hidden=4096, positions=1023, text_ids=4096),
    ),
}
