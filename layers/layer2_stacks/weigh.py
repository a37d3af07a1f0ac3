"""Captures against their guards: the sound ones are analysed by mode, the void ones left out.

What is left out reaches no share: analyses are made anew of the sound captures alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.choice import ANY_THREAD, Choice
from layers.layer2_stacks.facts import CaptureFacts, capture_facts, names
from layers.layer2_stacks.guards_capture import CAPTURE_GUARDS
from layers.layer2_stacks.model import Capture, StackAnalysis
from layers.layer2_stacks.reading import Reading, read


@dataclass(frozen=True, slots=True)
class JudgedCapture:
    """One capture's facts and the guards on it."""

    facts: CaptureFacts
    guards: tuple[Checked, ...]

    @property
    def void(self) -> bool:
        """Whether it is left out."""
        return any(g.fired and g.effect is Effect.VOID for g in self.guards)


@dataclass(frozen=True, slots=True)
class Weighed:
    """Captures with the guards on each; the sound ones analysed by mode, and the thread of the verdict."""

    captures: tuple[JudgedCapture, ...]
    analyses: tuple[StackAnalysis, ...]
    reading: Reading | None

    @property
    def guards(self) -> list[Checked]:
        """Those on single captures."""
        return [checked for capture in self.captures for checked in capture.guards]

    @property
    def sound(self) -> list[CaptureFacts]:
        """What counts."""
        return [capture.facts for capture in self.captures if not capture.void]


def weigh(captures: Sequence[Capture], choice: Choice = ANY_THREAD) -> Weighed:
    """Each capture against its guards, and the sound ones analysed. UsageError where the choice fits none."""
    judged = []
    for capture, name in zip(captures, names(captures), strict=True):
        facts = capture_facts(capture)
        judged.append(JudgedCapture(facts, tuple(apply_guards(CAPTURE_GUARDS, facts, name))))
    sound = [one.facts.capture for one in judged if not one.void]
    analyses = tuple(_by_mode(sound))
    return Weighed(tuple(judged), analyses, read(analyses, choice))


def _by_mode(captures: Sequence[Capture]) -> Iterator[StackAnalysis]:
    for mode in Mode:
        of_mode = [capture for capture in captures if capture.mode is mode]
        if of_mode:
            yield analyse(of_mode)
