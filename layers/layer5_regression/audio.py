"""How far two sounds are apart: what a listener or an engineer asks once their bytes differ. Pure.

A sound that comes one sample later has no sample in common with the other and an SNR of nothing, so the lag
is found first, by cross-correlation, and the SNR is given with and without it. Nothing here passes a sound:
it tells a rounding (1 LSB) from a shift, from another sound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layers.layer5_regression.model import AudioDifference, Paired, Sample
from parsers.output_model import Kind, Payload
from parsers.series_model import F64

MAX_LAG_S = 0.5
"""A model's delay or a lost chunk is shorter; beyond it two sounds are two sounds."""
LOOKED_AT_S = 20.0
"""Of a sound, for its lag: one that shifts later differs at no lag."""
USUAL_RATE_HZ = 24_000
"""Of speech models, where the rate is not known: it bounds the lag alone."""
FULL_SCALE = 32768
"""Steps of 16 bits: in these differences are told, whatever the format."""
BITS_24 = 3


def heard(paired: Paired) -> Paired:
    """The same with how far sounds are apart, where they differ: a cross-correlation each, so not for faults
    that are planted."""
    return replace(paired, samples=tuple(map(_heard, paired.samples)))


def _heard(sample: Sample) -> Sample:
    a, b = sample.a.payload(Kind.PCM), sample.b.payload(Kind.PCM)
    found = sample.difference
    if found is None or found.kind is not Kind.PCM or found.at is None or a is None or b is None:
        return sample
    return replace(sample, difference=replace(found, audio=audio_difference(a, b)))


def audio_difference(a: Payload, b: Payload) -> AudioDifference | None:
    """The difference over the frames that both have; None where one has none."""
    sounds = (as_float(a), as_float(b))
    n = min(len(sounds[0]), len(sounds[1]))
    if not n:
        return None
    x, y = (np.nan_to_num(sound[:n].mean(axis=1)) for sound in sounds)
    rate_hz = a.rate_hz or USUAL_RATE_HZ
    some = int(LOOKED_AT_S * rate_hz)
    lag = lag_frames(x[:some], y[:some], int(MAX_LAG_S * rate_hz))
    shifted = _aligned(x, y, lag)
    return AudioDifference(
        frames=(len(sounds[0]), len(sounds[1])),
        lag_frames=lag,
        max_lsb=float(np.nanmax(np.abs(sounds[0][:n] - sounds[1][:n]), initial=0.0)) * FULL_SCALE,
        snr_db=snr_db(x, y),
        aligned_snr_db=snr_db(*shifted),
        equal_share=float((sounds[0][:n] == sounds[1][:n]).all(axis=1).mean()),
    )


def as_float(payload: Payload) -> F64:
    """Samples in -1..1, shape (frames, channels); half a frame at the end is left out."""
    channels, size = payload.shape[1], int(payload.dtype[-1])
    data = payload.data[: len(payload.data) // (size * channels) * size * channels]
    if size == BITS_24:
        wide = np.zeros((len(data) // BITS_24, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, BITS_24)
        found = wide.view("<i4").reshape(-1) / 2.0**31
    else:
        found = _scaled(np.frombuffer(data, payload.dtype))
    samples: F64 = found.reshape(-1, channels)
    return samples


def _scaled(samples: np.ndarray[tuple[int], np.dtype[np.generic]]) -> F64:
    kind, bits = samples.dtype.kind, 8 * samples.dtype.itemsize
    values = samples.astype(np.float64)
    if kind == "f":
        return values
    return (values - 128) / 128 if kind == "u" else values / 2.0 ** (bits - 1)


def lag_frames(x: F64, y: F64, most: int) -> int:
    """By how many frames y comes later than x, at most so many; 0 where one of them is silent."""
    from scipy.signal import correlate, correlation_lags

    if not x.any() or not y.any():
        return 0
    lags = correlation_lags(len(y), len(x))
    near = np.abs(lags) <= most
    scores = correlate(y, x, method="fft")[near]
    best = scores.max()
    tied = lags[near][scores >= best - 1e-9 * abs(best)]
    return int(tied[np.abs(tied).argmin()])


def snr_db(x: F64, y: F64) -> float | None:
    """10 log10 of the power of x over that of x - y; None where there is no difference, or no signal."""
    signal, noise = float(np.sum(x * x)), float(np.sum((x - y) ** 2))
    return 10 * float(np.log10(signal / noise)) if signal and noise else None


def _aligned(x: F64, y: F64, lag: int) -> tuple[F64, F64]:
    """What both have once y is moved back by the lag."""
    if lag >= 0:
        return x[: len(x) - lag], y[lag:]
    return x[-lag:], y[: len(y) + lag]
