"""What stages hand each other: the seams of both pipelines.

    tts    Request -> preprocess -> Prompt -> ar -> Frame ... CodeChunk -> vocoder -> Audio
    asr    Request -> preprocess -> Features -> encoder -> Encoded -> prefill, decode -> Token ...

`slot` is a slot of the stage that the record comes from or goes to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sample_engine.stages.handoff import Handoff

EOS_ID = 151_645
"""Text id of the last row: above every id that is sampled, and above every folded prefix key (as in Qwen's
vocabulary, whose special ids begin at 151 643)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the tts decoder starts from: text ids, their prefix keys, how many rows to make, how to sample."""

    text_ids: tuple[int, ...]
    keys: tuple[int, ...]
    steps: int
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One row of the tts decoder: a text id and 12 codes, its prefix key, and whether it is the last."""

    slot: int
    text_id: int
    codes: tuple[int, ...]
    key: int
    last: bool


@dataclass(frozen=True, slots=True)
class CodeChunk:
    """Consecutive frames of one request for its vocoder slot: `codes` is int64 of shape (frames, 12)."""

    slot: int
    codes: Handoff
    frames: int


@dataclass(frozen=True, slots=True)
class Audio:
    """Samples of one chunk: 16 bit, 24 kHz."""

    slot: int
    samples: npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Features:
    """What the encoder takes: float32 of shape (frames, bands), a digest of the content for its cache; how
    many positions it becomes, and how many tokens to make.
    """

    values: npt.NDArray[np.float32]
    digest: bytes
    positions: int
    steps: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the asr decoder starts from: float32 of shape (positions, width), and how many tokens to make."""

    states: Handoff
    positions: int
    steps: int


@dataclass(frozen=True, slots=True)
class Token:
    """One step of the asr decoder."""

    slot: int
    text_id: int
    last: bool
