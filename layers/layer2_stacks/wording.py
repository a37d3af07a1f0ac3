"""How Layer 2 writes a share, a line and a thread: always with the interval, always with whose it is."""

from __future__ import annotations

from layers.evidence.wording import counted, pct
from layers.layer2_stacks.model import Row, ScopeAnalysis, Share


def interval(share: Share) -> str:
    """`32.2 % [26.6, 38.4]`."""
    return f"{pct(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def place(where: str, function: str) -> str:
    """`engine.py:14 (burn)`."""
    return f"{where} ({function})" if function and function not in where else where


def line(row: Row) -> str:
    """The row by its place."""
    return place(row.where, row.function)


def called_from(row: Row) -> str:
    """` from step (engine.py:9)`: the program's own line above a library's; empty where there is none."""
    return f" from {row.callers[0].name}" if row.callers else ""


def counts(scope: ScopeAnalysis) -> str:
    """`717 ticks, 3 captures`."""
    captures = sum(1 for n in scope.ticks if n)
    return f"{counted(scope.total_ticks, 'tick')}, {counted(captures, 'capture')}"
