"""One number with everything that makes it checkable.

A measurement without n, unit or method does not exist here: the constructor wants all of them. Values that
were not measured are absent (no `Measurement`), never 0 and never NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from parsers.errors import InvalidMeasurement


@dataclass(frozen=True, slots=True)
class Artifact:
    """A raw file that a measurement was read from: where it lies, its sha256 (hex) and its size in bytes."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured value: `n` counts what `n_unit` names (device operations, samples, requests, steps).

    `raw` holds the values that were reduced to `value`, or is empty where the artifact holds them. `scope`
    says whose value it is (device, rank, stream, point), empty when there is only one. All values are finite.
    """

    name: str
    value: float
    unit: str
    n: int
    n_unit: str
    method: str
    artifact: Artifact | None = None
    scope: str = ""
    raw: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise InvalidMeasurement(f"{self.name}: {self.value} is no measurement; call it not measured")
        if not all(map(math.isfinite, self.raw)):
            raise InvalidMeasurement(f"{self.name}: a raw value is not finite; leave it out")
        if self.n < 1:
            raise InvalidMeasurement(f"{self.name}: n = {self.n}; nothing was measured")
