"""What doubts about how something was measured do to the result that rests on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layers.evidence.finding import Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit


def with_doubts(result: Result, guards: Sequence[Checked]) -> Result:
    """The result with guards on how it was measured; a directional one leaves it a hint."""
    guarded = replace(result, guards=[*result.guards, *guards])
    doubts = [c for c in guards if c.fired and c.effect is Effect.DIRECTIONAL]
    if not doubts or result.verdict.exit_code not in (Exit.OK, Exit.NO_CONCLUSION):
        return guarded
    rule = "directional: " + ", ".join(c.title for c in doubts)
    because = f"{result.verdict.because}; {'; '.join(c.message for c in doubts)}"
    had_word = result.verdict.exit_code is Exit.OK or result.verdict.directional
    return replace(
        guarded,
        verdict=replace(result.verdict, because=because, directional=had_word, exit_code=Exit.NO_CONCLUSION),
        findings=[replace(f, strength=Strength.WEAK, rule=rule) for f in result.findings],
    )
