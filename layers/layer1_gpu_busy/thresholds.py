"""Where a busy ratio becomes a verdict: two thresholds, stated with every verdict and settable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layers.evidence.wording import limit
from parsers.errors import UsageError

HOST_BOUND_SHARE = 0.60
DEVICE_BOUND_SHARE = 0.90
"""perfkit's choice: public methods only say "well below 100 %" and "near saturation"."""


class Word(StrEnum):
    """The verdict words of Layer 1."""

    HOST_BOUND = "host-bound"
    DEVICE_BOUND = "device-bound"
    UNDECIDED = "undecided"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Device-op time at or below `host_bound` is host-bound, at or above `device_bound` device-bound."""

    host_bound: float = HOST_BOUND_SHARE
    device_bound: float = DEVICE_BOUND_SHARE

    def __post_init__(self) -> None:
        if not 0.0 <= self.host_bound < self.device_bound <= 1.0:
            raise UsageError(
                f"thresholds {self.host_bound:g} and {self.device_bound:g}: the host-bound one must be the "
                "smaller, and both are shares from 0 to 1"
            )

    def __str__(self) -> str:
        low, high = limit(self.host_bound), limit(self.device_bound)
        return f"device-op time <= {low} host-bound, >= {high} device-bound"


def word_of(ratio: float, thresholds: Thresholds) -> Word:
    """The word for one ratio."""
    if ratio <= thresholds.host_bound:
        return Word.HOST_BOUND
    return Word.DEVICE_BOUND if ratio >= thresholds.device_bound else Word.UNDECIDED
