"""How much of a sampled field is known: the one rule by which every mean of samples is taken or doubted.

A reading is missing where the sampler gave no value, or one that the metric cannot have, or did not look at
all (a hole). Of what is missing nothing is known, and often it is the busiest time: a mean m of a known share
k stands for anything from k·m to k·m + (1 - k).
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.wording import pct
from layers.layer1_gpu_busy.thresholds import HOST_BOUND_SHARE
from parsers.series_model import Series

LOST_SHARE = 0.05
"""Of readings: beyond this what is missing could turn the mean. perfkit's choice."""
TOO_LITTLE_KNOWN = 1 - HOST_BOUND_SHARE
"""A share known below which no mean says anything: the rest alone may hold more than a host-bound device
does."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Readings of one field: with a value, without one, with an impossible one; and the time without any."""

    field: str
    usable: int
    without_value: int
    impossible: int
    hole_share: float = 0.0

    @property
    def readings(self) -> int:
        return self.usable + self.without_value + self.impossible

    @property
    def known_share(self) -> float:
        """The less of the readings with a value, and of the time that they cover."""
        return min(self.usable / self.readings, 1 - self.hole_share) if self.readings else 0.0

    @property
    def partial(self) -> bool:
        """Whether anything is missing."""
        return self.usable < self.readings or self.hole_share > 0

    @property
    def doubtful(self) -> bool:
        """Whether what is missing could turn the mean."""
        return self.known_share < 1 - LOST_SHARE

    @property
    def too_little(self) -> bool:
        """Whether what is left is no measurement."""
        return self.known_share < TOO_LITTLE_KNOWN

    @property
    def text(self) -> str:
        """`SMACT: 30 of 60 readings have a value (50.0 %)`, with what else is missing."""
        share = pct(self.usable / self.readings) if self.readings else "none"
        parts = [f"{self.field}: {self.usable:,} of {self.readings:,} readings have a value ({share})"]
        if self.impossible:
            parts.append(f"{self.impossible:,} with one that it cannot have")
        if self.hole_share:
            parts.append(f"{pct(self.hole_share)} of the time without any reading")
        return ", ".join(parts)


def coverage_of(series: Series) -> Coverage:
    """The readings of a whole series; holes in time are not looked for."""
    return Coverage(series.field, len(series.values), series.missing, series.out_of_range)
