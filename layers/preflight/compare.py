"""Two snapshots side by side: a pair of runs counts only if nothing differs but what was declared.

A fact that could not be had on one side is a difference like any other: nobody knows that it was the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain

from layers.preflight.facts import Fact, Section
from layers.preflight.snapshot import Snapshot

ABSENT = "(absent)"

UNTELLING = re.compile(r"^machine\.cgroup\.throttled_periods$")
"""Counters: they grow by themselves and say nothing of what was changed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same; `name` is section and fact, `declared`: it was meant to differ."""

    name: str
    before: Fact
    after: Fact
    declared: bool


def compare(before: Snapshot, after: Snapshot, declared: Collection[str] = ()) -> list[Difference]:
    """All differences in the order of the sections; `declared` are names or patterns (environment.CUDA_*)."""
    a, b = flat(before), flat(after)
    return [
        Difference(name, a.get(name, ABSENT), b.get(name, ABSENT), _is_declared(name, declared))
        for name in dict.fromkeys(chain(a, b))
        if a.get(name, ABSENT) != b.get(name, ABSENT) and not UNTELLING.match(name)
    ]


def without_effect(
    names: Collection[str], differences: Collection[Difference], declared: Collection[str]
) -> list[str]:
    """What was declared and does not differ, each with why; `names` are all facts of both snapshots."""
    found = []
    for pattern in declared:
        if not any(_is_declared(one.name, [pattern]) for one in differences):
            known = any(_is_declared(name, [pattern]) for name in names)
            found.append(f"{pattern} is the same in both" if known else f"{pattern} is no fact of either")
    return found


def flat(snapshot: Snapshot) -> dict[str, Fact]:
    """Every fact by section and name; one that could not be had is the reason why."""
    return dict(chain.from_iterable(map(_flat_section, snapshot.sections)))


def _flat_section(section: Section) -> Iterator[tuple[str, Fact]]:
    yield from ((f"{section.name}.{name}", value) for name, value in section.facts.items())
    yield from (
        (f"{section.name}.{name}", f"unavailable: {why}") for name, why in section.unavailable.items()
    )


def _is_declared(name: str, declared: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in declared)
