"""How far a finding carries: strong, medium or weak, computed from what it rests on and from the guards.

    strong   the strong column of the table holds and no guard weakened it
    medium   one clean run or capture with a clear direction, or two methods that agree without repeats
    weak     indirect inference, a known confound, no clear direction, or directional

Strength is never chosen. Every judgement names the rule that fired, so that a reader can contest it. A void
guard, or nothing measured, leaves no judgement and hence no finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from layers.evidence.finding import Strength
from layers.evidence.guard import Checked, Effect, strongest_effect
from layers.evidence.strength_table import Facts, Standing
from layers.evidence.verdict import Exit


class Judgement(NamedTuple):
    """A strength, the rule that fired (with the n that it saw), and whether the result may only hint."""

    strength: Strength
    rule: str
    directional: bool


def judge_strength(
    facts: Facts,
    checked: Sequence[Checked] = (),
    *,
    clear: bool,
    methods_agree: bool = False,
    doubt: str = "",
) -> Judgement | None:
    """Judge a finding by its facts and the guards on them; None where there is no finding to judge.

    `clear`: the direction is clear. `methods_agree`: a second method says the same, without repeats. `doubt`
    names the confound, or what the claim was inferred from where it was not measured itself.
    """
    if facts.standing is Standing.NOTHING or strongest_effect(checked) is Effect.VOID:
        return None
    if reason := _why_directional(facts, checked):
        return Judgement(Strength.WEAK, f"directional: {reason}", True)
    strength, rule = _grade(facts, clear, methods_agree, doubt)
    return Judgement(strength, f"{rule} ({facts.counted})", False)


def exit_code_for(reached: Exit, checked: Iterable[Checked], *, directional: bool) -> Exit:
    """The exit code of a verdict: a void guard makes it invalid, a directional one open, else it stands.

    What is invalid already gets no better by a hint.
    """
    effect = strongest_effect(checked)
    if effect is Effect.VOID or reached is Exit.INVALID:
        return Exit.INVALID
    return Exit.NO_CONCLUSION if directional or effect is Effect.DIRECTIONAL else reached


def _why_directional(facts: Facts, checked: Iterable[Checked]) -> str:
    """The first reason why the result may only hint, or nothing."""
    if facts.standing is Standing.DIRECTIONAL:
        return f"{facts.row.directional_below} ({facts.counted})"
    fired = [c for c in checked if c.fired and c.effect is Effect.DIRECTIONAL]
    return ", ".join(dict.fromkeys(c.title for c in fired))


def _grade(facts: Facts, clear: bool, methods_agree: bool, doubt: str) -> tuple[Strength, str]:
    if doubt:
        return Strength.WEAK, f"indirect or confounded: {doubt}"
    if facts.standing is Standing.STRONG:
        return Strength.STRONG, facts.row.strong_needs
    if methods_agree:
        return Strength.MEDIUM, "two methods agree, without repeats"
    if clear:
        return Strength.MEDIUM, f"clean, with a clear direction; strong needs {facts.row.strong_needs}"
    return Strength.WEAK, "no clear direction"
