"""A finding: a statement that somebody can act on, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layers.evidence.measurement import Artifact, Measurement


class Strength(StrEnum):
    """How far a finding carries; computed by `layers.evidence.strength`, never chosen."""

    STRONG = "strong"
    MEDIUM = "medium"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is the line of the strength table that fired; `negative`: looked, nothing to change, because.

    It rests on `measurements`, or, where no single number says it, on `evidence`: what was seen, in words
    with its numbers and their n, and the `artifacts` that it was read from. `scope` says whose finding it is,
    as a measurement's does.
    """

    statement: str
    strength: Strength
    rule: str
    recommendation: str
    negative: bool = False
    measurements: tuple[Measurement, ...] = ()
    disproof: str = ""
    evidence: str = ""
    artifacts: tuple[Artifact, ...] = ()
    scope: str = ""
