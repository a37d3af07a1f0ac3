"""Guards: named checks on whether a measurement means what it seems to mean.

A guard is one declarative entry with one pure function. The entry is all that `perfkit explain`, the
catalogue in docs/ and the methodology document show; the function looks at the facts of its layer and says
whether the trap is there. Layers name each entry and list them; `layers.catalogue` gathers the lists.
Who asks for one guard's outcome asks its entry (`FEW_SAMPLES.fired_in(guards)`), never its code as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Facts = TypeVar("Facts")


class Effect(StrEnum):
    """What a guard that fires does to the result that it guards, strongest first."""

    VOID = "void"
    DIRECTIONAL = "directional"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check found: whether the trap is there, and the numbers that say so.

    `effect` weakens the guard's own effect for this case (None: the guard's own); it never strengthens it.
    """

    fired: bool
    message: str
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Guard(Generic[Facts]):
    """One entry of the catalogue. `check` returns None where the guard does not apply to these facts."""

    code: str
    name: str
    layer: str
    effect: Effect
    sees: str
    cause: str
    detection: str
    remedy: str
    source: str
    check: Callable[[Facts], Outcome | None]

    @property
    def title(self) -> str:
        """Code and name."""
        return f"{self.code} {self.name}"

    def fired_in(self, checked: Iterable[Checked]) -> Checked | None:
        """The first time that this guard fired; None where it did not."""
        return next((c for c in checked if c.fired and c.code == self.code), None)


@dataclass(frozen=True, slots=True)
class Checked:
    """One guard applied to one set of facts."""

    code: str
    name: str
    effect: Effect
    fired: bool
    message: str
    scope: str = ""

    @property
    def title(self) -> str:
        """Code and name."""
        return f"{self.code} {self.name}"


def apply_guards(guards: Iterable[Guard[Facts]], facts: Facts, scope: str = "") -> list[Checked]:
    """Run every guard that applies, in catalogue order."""
    checked = []
    for guard in guards:
        outcome = guard.check(facts)
        if outcome is not None:
            effect = _weaker(guard.effect, outcome.effect or guard.effect)
            checked.append(Checked(guard.code, guard.name, effect, outcome.fired, outcome.message, scope))
    return checked


def _weaker(a: Effect, b: Effect) -> Effect:
    return max(a, b, key=list(Effect).index)


def strongest_effect(checked: Iterable[Checked]) -> Effect | None:
    """The strongest effect among the guards that fired; None when none did."""
    fired = {c.effect for c in checked if c.fired}
    return next((effect for effect in Effect if effect in fired), None)
