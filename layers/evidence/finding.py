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


class FindingKind(StrEnum):
    """What a finding is to the verdict of its command."""

    VERDICT = "verdict"
    """the verdict itself, for the device or card that it is about"""
    CONSEQUENCE = "consequence"
    """what the verdict rules out"""
    OBSERVATION = "observation"
    """something seen beside it"""


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is the line of the strength table that fired; `negative`: looked, nothing to change, because.

    It rests on `measurements`, or, where no single number says it, on `evidence`: what was seen, in words
    with its numbers and their n, and the `artifacts` that it was read from. `scope` says whose finding it is,
    as a measurement's does; `kind` is what readers tell findings apart by.
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
    kind: FindingKind = FindingKind.OBSERVATION
