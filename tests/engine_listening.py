"""What tests of the asr pipeline share: audio that is made up, and an engine that transcribes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sample_engine.models.asr_sizes import SAMPLE_RATE_HZ
from sample_engine.scheduling.request import Request
from sample_engine.stages.features import Array
from tests.engine_service import Service, service

LENGTHS_S = (0.3, 1.0, 2.6, 1.28, 0.05, 1.9, 3.0, 0.7)
"""Of one to three windows, one of them exactly one."""
NAMES = [f"a{index}" for index in range(16)]


def audio(index: int, seconds: float | None = None) -> Array:
    """A gliding tone in noise; another one for each number."""
    random = np.random.default_rng(index)
    length = LENGTHS_S[index % len(LENGTHS_S)] if seconds is None else seconds
    at_s = np.arange(int(SAMPLE_RATE_HZ * length)) / SAMPLE_RATE_HZ
    tone = np.sin(2 * np.pi * random.uniform(100, 2000) * at_s * (1 + 0.2 * np.sin(3 * at_s)))
    return (0.3 * tone + 0.05 * random.standard_normal(len(at_s))).astype(np.float32)


def hear(running: Service, name: str, samples: Array | None, **more: Any) -> str:
    """Submit a transcription."""
    running.said[name] = []
    running.engine.submit(Request(name, "transcription", samples=samples, **more))
    return name


def texts(running: Service, names: Sequence[str] = NAMES) -> list[str]:
    """Of the audios of these numbers, asked for at once."""
    for index, name in enumerate(names):
        hear(running, name, audio(index))
    return [running.data(name).decode() for name in names]


@contextmanager
def listening(**options: Any) -> Iterator[Service]:
    """An engine of the asr pipeline."""
    with service(pipeline="asr", **options) as running:
        yield running
