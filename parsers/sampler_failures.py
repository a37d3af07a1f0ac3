"""What samplers say when they fail, and what kind of failure it is: one table of their own words.

dcgmi prints its errors on stdout, nvidia-smi prints some of them inside a cell; both end up in logs. A
sampler that failed measured nothing, which is no utilisation of 0.
"""

from __future__ import annotations

from functools import lru_cache

from parsers.series_model import Failure, FailureKind

MAX_TEXT_CHARACTERS = 200
"""Of a failure's words that are kept."""

WORDS: tuple[tuple[str, FailureKind], ...] = (
    ("insufficient permission", FailureKind.PERMISSION),
    ("insufficient privilege", FailureKind.PERMISSION),
    ("running as non-root", FailureKind.PERMISSION),
    ("requires the host engine to be running as root", FailureKind.PERMISSION),
    ("third-party profiling module", FailureKind.PROFILING_LOCK),
    ("result: -37", FailureKind.PROFILING_LOCK),
    ("unable to connect to host engine", FailureKind.NO_HOST_ENGINE),
    ("unable to establish a connection to the specified host", FailureKind.NO_HOST_ENGINE),
    ("feature not supported", FailureKind.NOT_SUPPORTED),
    ("module of dcgm that is not currently loaded", FailureKind.NOT_SUPPORTED),
    ("profiling is not supported", FailureKind.NOT_SUPPORTED),
    ("cannot be collected in a single pass", FailureKind.NOT_SUPPORTED),
    ("requires a newer driver", FailureKind.NOT_SUPPORTED),
    ("is not a valid field to query", FailureKind.NOT_SUPPORTED),
    ("nvidia-smi has failed", FailureKind.DRIVER),
    ("failed to initialize nvml", FailureKind.DRIVER),
    ("driver/library version mismatch", FailureKind.DRIVER),
    ("no devices were found", FailureKind.DRIVER),
    ("gpu is lost", FailureKind.GPU_LOST),
    ("gpu requires reset", FailureKind.GPU_LOST),
    ("unable to determine the device handle", FailureKind.GPU_LOST),
    ("no data returned from the hostengine", FailureKind.NO_DATA),
)
"""Sources: dcgmi and DCGM's errorString table (NVIDIA/DCGM), nvidia-smi's manual page, public issue reports
(NVIDIA/DCGM 3, 56, 62, 196; nvidia-docker 1671). First match wins, lower case."""


@lru_cache(maxsize=1024)
def failure_in(text: str) -> Failure | None:
    """The failure that these words report; None where they report none."""
    lowered = text.lower()
    kind = next((kind for words, kind in WORDS if words in lowered), None)
    return Failure(kind, " ".join(text.split())[:MAX_TEXT_CHARACTERS]) if kind else None
