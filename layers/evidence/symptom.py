"""A symptom: what slow work looks like, as one entry of a catalogue and as what was seen of it.

An entry is declarative (what the reader sees, the threshold and who set it, the usual cause, where to look,
what would disprove it) plus one pure function over the facts of its layer. The function answers with `Seen`:
present, absent, or None where what was recorded cannot tell, always with numbers that name their n. Its
conditions decide (`all_of`, `any_of`), so that a number that just misses its threshold is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from layers.evidence.wording import pct

Facts = TypeVar("Facts")

PROPOSED = "perfkit's proposal, to be calibrated"

NEAR_SHARE = 0.10
"""perfkit's proposal: a number this close to its threshold, as a share of it, is a near miss."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """One entry of the catalogue that something was checked for. `present` None: what was recorded cannot
    show it, and `numbers` says what it would take. `close` names the numbers that just miss their threshold
    where those alone keep an absent symptom from being there; else it is empty."""

    code: str
    title: str
    present: bool | None
    numbers: str
    threshold: str
    threshold_source: str
    usual_cause: str
    look_next: str
    disproof: str
    close: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one check saw. `present` None: this trace cannot show it, and `numbers` says what it takes.
    `close` names what just missed its threshold, where that alone decided."""

    present: bool | None
    numbers: str
    close: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One number against its threshold, which it must pass: from below, or `under` it."""

    what: str
    value: float
    threshold: float
    under: bool = False
    write: Callable[[float], str] = pct

    @property
    def holds(self) -> bool:
        return self.value < self.threshold if self.under else self.value > self.threshold

    @property
    def near(self) -> bool:
        """Whether it just misses."""
        return not self.holds and abs(self.value - self.threshold) <= NEAR_SHARE * abs(self.threshold)

    def __str__(self) -> str:
        return f"{self.what} {self.write(self.value)} against {self.write(self.threshold)}"


def all_of(numbers: str, *conditions: Condition) -> Seen:
    """Present if every condition holds; close if those that do not are near."""
    failed = [c for c in conditions if not c.holds]
    near = all(c.near for c in failed)
    return Seen(not failed, numbers, ", ".join(map(str, failed)) if near else "")


def any_of(numbers: str, *conditions: Condition) -> Seen:
    """Present if one condition holds; close if none does and one is near."""
    present = any(c.holds for c in conditions)
    near = [] if present else [str(c) for c in conditions if c.near]
    return Seen(present, numbers, ", ".join(near))


@dataclass(frozen=True, slots=True)
class SymptomRule(Generic[Facts]):
    """One entry of the catalogue; `check` is its only code. `name`: the title, written as a guard's name."""

    code: str
    title: str
    threshold: str
    threshold_source: str
    usual_cause: str
    look_next: str
    disproof: str
    check: Callable[[Facts], Seen]

    @property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower())


def as_symptom(rule: SymptomRule[Facts], facts: Facts) -> Symptom:
    """The entry with what it saw in these facts."""
    seen = rule.check(facts)
    return Symptom(
        code=rule.code,
        title=rule.title,
        present=seen.present,
        numbers=seen.numbers,
        threshold=rule.threshold,
        threshold_source=rule.threshold_source,
        usual_cause=rule.usual_cause,
        look_next=rule.look_next,
        disproof=rule.disproof,
        close=seen.close,
    )
