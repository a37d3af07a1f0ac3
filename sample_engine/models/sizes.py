"""How large the networks are.

`tiny` is for tests. `small` is the default on a CPU: its kernels take a microsecond or two, so that eager
mode is bound by launching, as a large model's small kernels are on a GPU. `large` is for a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

CODEBOOKS = 12
CHANNELS = 1 + CODEBOOKS
"""A row of the tts decoder: a text id, then a code of each codebook."""


@dataclass(frozen=True, slots=True)
class StackSize:
    """A decoder-only transformer. `positions` bounds prompt and output together; `text_ids` is the size of
    the vocabulary.
    """

    width: int
    heads: int
    layers: int
    hidden: int
    positions: int
    text_ids: int


@dataclass(frozen=True, slots=True)
class DecoderSize(StackSize):
    """The tts decoder's; `code_ids` is the size of the vocabulary of each codebook."""

    code_ids: int


AR_SIZES = {
    "tiny": DecoderSize(width=16, heads=2, layers=2, hidden=32, positions=48, text_ids=64, code_ids=16),
    "small": DecoderSize(width=32, heads=1, layers=24, hidden=64, positions=128, text_ids=256, code_ids=64),
    "large": DecoderSize(
        width=1024, heads=16, layers=24, hidden=4096, positions=1024, text_ids=4096, code_ids=1024
    ),
}
"""The decoder of the tts pipeline."""
