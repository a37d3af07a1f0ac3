"""Which runs do not count: those that Layer 3 voids, those that met others on their machine or card, and
those whose card was slowed down, or ran at another clock than in the other runs of its arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.wording import limit
from layers.layer3_sweep.analyse import EACH_PASS
from layers.layer3_sweep.guards_pass import CARD_SHARED, CARD_SLOWED, CONTENDED
from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab.model import Round

CONTENDING = frozenset({CONTENDED.code, CARD_SHARED.code, CARD_SLOWED.code})
CLOCK_APART = 0.05
"""Of the median clock of an arm's runs. perfkit's choice: work that computes is slower by as much, and that
is more than most effects that an A/B looks for."""


def why_excluded(swept: SweepPass, seen: Sequence[Checked]) -> str:
    """Why a run does not count, in words; empty where it does. `seen`: guards that were applied already."""
    fired = [c for c in (*apply_guards(EACH_PASS, swept), *seen) if c.fired]
    against = [c for c in fired if c.effect is Effect.VOID or _contends(c)]
    return f"{against[0].title}: {against[0].message}" if against else ""


def _contends(checked: Checked) -> bool:
    return checked.code in CONTENDING and checked.effect is not Effect.NOTE


def clock_of(swept: SweepPass) -> float | None:
    """The median SM clock of the cards of a run (MHz); None where none was sampled."""
    clocks = [card.sm_clock_mhz for card in swept.cards if card.sm_clock_mhz]
    return median(clocks) if clocks else None


def without_odd_clocks(rounds: Sequence[Round]) -> list[Round]:
    """The rounds of one arm; those at another clock than the others of it do not count."""
    told = [clock for one in rounds if not one.excluded and (clock := clock_of(one.swept)) is not None]
    if len(told) < 2:
        return list(rounds)
    usual = median(told)
    return [_held_against(one, usual) for one in rounds]


def _held_against(one: Round, usual: float) -> Round:
    clock = clock_of(one.swept)
    if one.excluded or clock is None or abs(clock / usual - 1) <= CLOCK_APART:
        return one
    why = f"clock of the card {clock:,.0f} MHz, {usual:,.0f} in the other runs of its arm"
    return replace(one, excluded=f"{why}: more than {limit(CLOCK_APART)} apart")
