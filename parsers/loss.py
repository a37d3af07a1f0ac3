"""What a damaged file lost, said plainly enough to be counted.

A parser that gets past damage returns one `Loss` a place. It never decides what the loss means for a result:
a layer turns losses into guards.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LossKind(StrEnum):
    """What sort of thing is not as it should be."""

    DAMAGE = "damage"
    """text that could not be read"""
    CLOCK = "clock"
    """read, at a time that cannot be right"""


@dataclass(frozen=True, slots=True)
class Loss:
    """One place of a file that could not be read, or was read with a repair.

    `offset` counts bytes of the decompressed text (-1: no one place). `lost_bytes` is what was given up
    there, 0 for a repair that lost nothing. `at_least`: what is left does not fit together, so more may be
    gone than is counted, and nothing tells how much. `may_hide_device_work`: the lost text may have held
    device events, so that a busy ratio of the rest is a lower bound only. `rest_is_missing`: the file ends
    here before its end, so nobody knows how much is lost.
    """

    what: str
    offset: int
    lost_bytes: int
    lost_events: int
    may_hide_device_work: bool
    rest_is_missing: bool = False
    kind: LossKind = LossKind.DAMAGE
    at_least: bool = False
