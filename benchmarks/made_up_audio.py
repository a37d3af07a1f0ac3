"""Audio that is made up: gliding tones in noise, another one for each number, of lengths as people speak."""

from __future__ import annotations

import io
import wave

import numpy as np
import numpy.typing as npt

RATE_HZ = 16_000
SHORTEST_S, LONGEST_S = 2.0, 6.0
FULL_SCALE = 32767


def samples(
    number: int, shortest_s: float = SHORTEST_S, longest_s: float = LONGEST_S
) -> npt.NDArray[np.float32]:
    """Mono, in -1..1; lengths are spread evenly."""
    random = np.random.default_rng(number)
    at_s = np.arange(int(RATE_HZ * random.uniform(shortest_s, longest_s))) / RATE_HZ
    tone = np.sin(2 * np.pi * random.uniform(100, 2000) * at_s * (1 + 0.2 * np.sin(3 * at_s)))
    return (0.3 * tone + 0.05 * random.standard_normal(len(at_s))).astype(np.float32)


def wav(number: int) -> bytes:
    """The same as a file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes((np.clip(samples(number), -1, 1) * FULL_SCALE).astype("<i2").tobytes())
    return out.getvalue()
