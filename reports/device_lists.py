"""Several devices in one phrase."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAMED = 8
"""Devices that are named before the rest is counted."""

OF_A_RANK = re.compile(r"rank (\d+), device \d+")


def devices_text(names: Sequence[str]) -> str:
    """`ranks 2, 6, 5`, or the names one by one; the rest is counted."""
    ranks = [match[1] for name in names if (match := OF_A_RANK.fullmatch(name))]
    shown = ranks if len(set(ranks)) == len(names) > 1 else names
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    label, between = ("ranks ", ", ") if shown is ranks else ("", "; ")
    return f"{label}{between.join(shown[:NAMED])}{more}"
