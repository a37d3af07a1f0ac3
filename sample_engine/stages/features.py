"""From samples to what the encoder takes: a spectrum of 25 ms every 10 ms, in bands as the ear has them.

On the host, by numpy, in a build worker. How many text ids an audio becomes follows from its length.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from sample_engine.models.asr_sizes import FRAMES_A_POSITION, HOP_SAMPLES, SAMPLE_RATE_HZ, AsrSize
from sample_engine.stages.payloads import Features
from sample_engine.stages.preprocess import TooLong

Array = npt.NDArray[np.float32]

SPAN_SAMPLES = 400
"""25 ms."""
FFT_SAMPLES = 512
LOWEST_HZ = 40.0
FLOOR = 1e-6
"""Added to the power, about that of 16 bit quantisation, so that silence has a logarithm."""
POSITIONS_AN_ID = 2
"""160 ms a syllable."""
DIGEST_BYTES = 16


def features_of(samples: Array, size: AsrSize) -> Features:
    """Logarithms of the power in each band, of mean 0 and deviation 1; raises TooLong."""
    frames = -(-len(samples) // HOP_SAMPLES)
    positions = -(-frames // FRAMES_A_POSITION)
    steps = 1 + -(-positions // POSITIONS_AN_ID)
    if positions + steps > size.decoder.positions:
        raise TooLong(f"{len(samples) / SAMPLE_RATE_HZ:.1f} s of audio; {longest_s(size):.1f} s always fit")
    values = _normalised(np.log(_bands(samples, frames, size.encoder.bands) + np.float32(FLOOR)))
    digest = blake2b(values.tobytes(), digest_size=DIGEST_BYTES).digest()
    return Features(values, digest, positions, steps)


def longest_s(size: AsrSize) -> float:
    """Of audio whose positions and ids surely fit into the decoder."""
    positions = (size.decoder.positions - 2) * POSITIONS_AN_ID // (POSITIONS_AN_ID + 1)
    return positions * FRAMES_A_POSITION * HOP_SAMPLES / SAMPLE_RATE_HZ


def _bands(samples: Array, frames: int, bands: int) -> Array:
    """Power (frames, bands)."""
    padded = np.zeros(frames * HOP_SAMPLES + SPAN_SAMPLES - HOP_SAMPLES, np.float32)
    padded[: len(samples)] = samples
    spans = np.lib.stride_tricks.sliding_window_view(padded, SPAN_SAMPLES)[::HOP_SAMPLES]
    spectrum = np.fft.rfft(spans * _taper(), FFT_SAMPLES).astype(np.complex64, copy=False)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    summed: Array = np.add.reduceat(power, _edges(bands), axis=1)
    return summed


@cache
def _taper() -> Array:
    return np.hanning(SPAN_SAMPLES).astype(np.float32)


@cache
def _edges(bands: int) -> npt.NDArray[np.int64]:
    """The first bin of each band: equal steps of pitch, and at least one bin each."""
    bins = FFT_SAMPLES // 2
    lowest = LOWEST_HZ * FFT_SAMPLES / SAMPLE_RATE_HZ
    edges = np.geomspace(lowest, bins, bands + 1)[:-1].astype(np.int64)
    order = np.arange(bands)
    return np.maximum.accumulate(np.maximum(edges, 1) - order) + order


def _normalised(values: Array) -> Array:
    spread = values.std() or np.float32(1)
    normalised: Array = ((values - values.mean()) / spread).astype(np.float32)
    return normalised
