"""SM active beside a busy ratio: the share of a chip that had work while anything was resident."""

from __future__ import annotations

from typing import NamedTuple


class SmActive(NamedTuple):
    """Its mean share over the same time, how many samples that rests on, and whose they are."""

    share: float
    n: int
    source: str
