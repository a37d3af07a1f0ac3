"""Several metrics at once: Holm's step-down adjustment (1979), which holds whatever way they depend."""

from __future__ import annotations

from collections.abc import Mapping


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Each p adjusted for the family: below 0.05 means a claim that is wrong at most 5 % of the time for all
    of them together."""
    adjusted: dict[str, float] = {}
    worst = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = worst
    return {name: adjusted[name] for name in p_values}
