"""A finding: a statement that somebody can act on, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layers.evidence.measurement import Measurement


class Strength(StrEnum):
    """How far a finding carries; computed by `layers.evidence.strength`, never chosen."""

    STRONG = "strong"
    MEDIUM = "medium"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is the line of the strength table that fired; `negative`: looked, nothing to change, because."""

    statement: str
    strength: Strength
    rule: str
    recommendation: str
    negative: bool = False
    measurements: tuple[Measurement, ...] = ()
    disproof: str = ""
