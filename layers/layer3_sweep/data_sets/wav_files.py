"""Sound that is made up and written as WAV files: bursts with a pitch and overtones, and pauses between them.

It is no speech and means nothing; a recogniser has the same work with it as with any sound of that length.
The same seed gives the same bytes. 16 bit mono PCM at 16 kHz, which speech recognisers work on.
"""

from __future__ import annotations

import os
import wave
from pathlib import Path

import numpy as np

from parsers.errors import StoreError
from parsers.series_model import F64

SAMPLE_RATE_HZ = 16_000
SYLLABLE_S = (0.12, 0.3)
PAUSE_SHARE = 0.15
PITCH_HZ = (90.0, 260.0)
OVERTONES = 8
LOUD = 0.3
FULL_SCALE = 32767


def write_sound(path: Path, seconds: float, rng: np.random.Generator) -> None:
    """Write a new file, whole or not at all; StoreError where that cannot be done."""
    samples = np.round(sound(seconds, rng) * FULL_SCALE).astype("<i2")
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file, wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(SAMPLE_RATE_HZ)
            out.writeframes(samples.tobytes())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: items of audio need files") from error


def sound(seconds: float, rng: np.random.Generator) -> F64:
    """Samples in -1..1, shape (n,)."""
    n = max(1, round(seconds * SAMPLE_RATE_HZ))
    made = np.zeros(n)
    at = 0
    while at < n:
        length = min(n - at, int(rng.uniform(*SYLLABLE_S) * SAMPLE_RATE_HZ))
        if at == 0 or rng.random() > PAUSE_SHARE:
            made[at : at + length] = _syllable(length, rng)
        at += length
    return made


def _syllable(n: int, rng: np.random.Generator) -> F64:
    time_s = np.arange(n) / SAMPLE_RATE_HZ
    pitch_hz = rng.uniform(*PITCH_HZ) * (1 + rng.uniform(-0.2, 0.2) * time_s)
    loudness = rng.random(OVERTONES) / np.arange(1, OVERTONES + 1)
    tones = [a * np.sin(2 * np.pi * (k + 1) * pitch_hz * time_s) for k, a in enumerate(loudness)]
    shaped: F64 = np.sum(tones, axis=0) * np.hanning(n) * LOUD / max(1e-9, float(loudness.sum()))
    return shaped
