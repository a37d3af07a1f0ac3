"""WAV in and out: a header in front of PCM, and PCM of any usual kind out of a file."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
UNKNOWN_BYTES = 0xFFFFFFFF
"""What players take for "until the end": the length of a stream is not known when it begins."""
BYTES_A_SAMPLE = 2
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_LENGTH_IN_HEADER = 36
_DTYPES = {1: "u1", 2: "<i2", 4: "<i4"}


def wav_header(sample_rate_hz: int, data_bytes: int | None) -> bytes:
    """Of 16 bit mono PCM; None where the length is not known yet."""
    data = UNKNOWN_BYTES if data_bytes is None else data_bytes
    whole = UNKNOWN_BYTES if data_bytes is None else data + _LENGTH_IN_HEADER
    rate, frame = sample_rate_hz, BYTES_A_SAMPLE
    return _HEADER.pack(
        *(b"RIFF", whole, b"WAVE", b"fmt ", 16, 1, 1, rate, rate * frame, frame, 8 * frame, b"data", data)
    )


def samples_of(data: bytes, sample_rate_hz: int) -> Samples:
    """The samples of a PCM WAV file as mono in -1..1, at this rate (linear interpolation). Raises ValueError
    for everything else.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            raw = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:
        raise ValueError(f"no PCM WAV file: {error}") from None
    if width not in _DTYPES or rate == 0 or len(raw) < channels * width:
        raise ValueError(f"a WAV file of {width} bytes a sample, {rate} Hz, {len(raw)} bytes cannot be read")
    mono: Samples = _scaled(raw, width).reshape(-1, channels).mean(axis=1, dtype=np.float32)
    return _resampled(mono, rate, sample_rate_hz)


def _scaled(raw: bytes, width: int) -> Samples:
    """To -1..1; WAV samples of one byte are unsigned."""
    values: Samples = np.frombuffer(raw, _DTYPES[width]).astype(np.float32)
    values /= 2 ** (8 * width - 1)
    return values - np.float32(width == 1)


def _resampled(mono: Samples, rate: int, wanted: int) -> Samples:
    if rate == wanted:
        return mono
    length = max(1, len(mono) * wanted // rate)
    places = np.arange(length) * (rate / wanted)
    resampled: Samples = np.interp(places, np.arange(len(mono)), mono).astype(np.float32)
    return resampled
