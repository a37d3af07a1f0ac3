"""What was looked at beside each run, so that "nobody disturbed it" is never mere silence.

A run that was not looked at counts as any other: whether others disturbed it is then not known, and that is
said ("not measured").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab.excluded import clock_of
from layers.layer4_ab.model import Round


class Condition(NamedTuple):
    """One thing that may disturb a run: in how many of them it was looked at."""

    name: str
    looked_at: int
    runs: int

    @property
    def text(self) -> str:
        """`clocks of the card: not measured`."""
        seen = f"in {self.looked_at} of {self.runs} runs" if self.looked_at else "not measured"
        return f"{self.name}: {seen}"


LOOKED_AT: dict[str, Callable[[SweepPass], bool]] = {
    "CPU of others": lambda run: run.host is not None and run.host.others_share is not None,
    "processes of others on the card": lambda run: any(c.others is not None for c in run.cards),
    "clocks of the card": lambda run: clock_of(run) is not None,
    "what holds its clocks back": lambda run: any(c.slowed is not None for c in run.cards),
}


def conditions(rounds: Iterable[Round]) -> tuple[Condition, ...]:
    """All of them, over the runs of both arms."""
    runs = [one.swept for one in rounds]
    return tuple(Condition(name, sum(map(told, runs)), len(runs)) for name, told in LOOKED_AT.items())
