"""The fixed set of requests of a bench: the same for every run, each another text or another audio.

Lengths vary, for a batch of equals would end all at once; they fit every size of the models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sample_engine.config.settings import Pipeline
from sample_engine.server.wav import wav_header

WORDS = (2, 3, 4, 5, 6, 7, 8)
SECONDS = (1.0, 1.5, 2.0, 2.5, 3.0)
RATE_HZ = 16_000
FULL_SCALE = 32767
BOUNDARY = "bench-of-the-engine"


@dataclass(frozen=True, slots=True)
class Ask:
    """A POST request. `audio_s` is what it brings; 0 for a text."""

    path: str
    content_type: str
    body: bytes
    audio_s: float = 0.0


def asks(pipeline: Pipeline, count: int) -> list[Ask]:
    """The first so many of the set."""
    make = MAKERS[pipeline]
    return [make(number) for number in range(count)]


def speech(number: int) -> Ask:
    text = " ".join(f"word{number}x{place}" for place in range(int(_one_of(WORDS, number))))
    body = f'{{"input": "{text}", "response_format": "pcm"}}'
    return Ask("/v1/audio/speech", "application/json", body.encode())


def transcription(number: int) -> Ask:
    seconds = _one_of(SECONDS, number)
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{number}.wav"\r\n'
        "Content-Type: audio/wav\r\n\r\n"
    )
    body = head.encode() + _wav(number, seconds) + f"\r\n--{BOUNDARY}--\r\n".encode()
    return Ask("/v1/audio/transcriptions", f"multipart/form-data; boundary={BOUNDARY}", body, seconds)


MAKERS: dict[Pipeline, Callable[[int], Ask]] = {"tts": speech, "asr": transcription}


def _one_of(values: Sequence[float], number: int) -> float:
    """Each as often as the others, in no regular order."""
    block, place = divmod(number, len(values))
    return float(np.random.default_rng(block).permutation(values)[place])


def _wav(number: int, seconds: float) -> bytes:
    """A gliding tone in noise."""
    random = np.random.default_rng(number)
    at_s = np.arange(int(RATE_HZ * seconds)) / RATE_HZ
    tone = 0.3 * np.sin(2 * np.pi * random.uniform(100, 2000) * at_s * (1 + 0.1 * np.sin(3 * at_s)))
    samples = np.clip(tone + 0.05 * random.standard_normal(len(at_s)), -1, 1)
    data = (samples * FULL_SCALE).astype("<i2").tobytes()
    return wav_header(RATE_HZ, len(data)) + data
