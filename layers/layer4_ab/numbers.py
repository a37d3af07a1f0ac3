"""Log-ratios as people read them: percent with a sign, ratios with the digits that mean something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layers.layer4_ab.logs import less_one
from layers.layer4_ab.model import Effect

WHOLE_PCT, MANY_PCT = 100.0, 1e6


def change(log: float) -> str:
    """`+2.79 %`."""
    return f"{100 * less_one(log):+.2f} %"


def size(log: float) -> str:
    """`0.82 %`: how far apart, whichever way; without decimals where they mean nothing."""
    return pct_text(pct_of(log))


def pct_text(pct: float) -> str:
    """A size in percent: two decimals below WHOLE_PCT, three digits from MANY_PCT on."""
    if pct >= MANY_PCT:
        return f"{pct:.3g} %"
    return f"{pct:.2f} %" if pct < WHOLE_PCT else f"{pct:,.0f} %"


def pct_of(log: float) -> float:
    """A size as a number of percent."""
    return 100 * less_one(abs(log))


def interval(effect: Effect) -> str:
    """`+2.79 % [+1.90, +3.69]`; without an interval where one pair has none."""
    if effect.low is None or effect.high is None:
        return f"{change(effect.mean)} (one pair: no interval)"
    low, high = (f"{100 * less_one(log):+.2f}" for log in (effect.low, effect.high))
    return f"{change(effect.mean)} [{low}, {high}]"


def interval_text(primary: Mapping[str, Any]) -> str:
    """The same of an effect in a document."""
    change_pct = f"{100 * (primary['ratio'] - 1):+.2f} %"
    if primary["low"] is None:
        return f"{change_pct} (one pair: no interval)"
    return f"{change_pct} [{100 * (primary['low'] - 1):+.2f}, {100 * (primary['high'] - 1):+.2f}]"
