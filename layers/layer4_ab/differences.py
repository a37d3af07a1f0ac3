"""In what the arms differ, as far as they were recorded: how they were made, and what they were asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from layers.layer4_ab.model import Difference, Round

ABSENT = "(absent)"
SAME_SHARE = 0.01
"""Numbers of the data that differ by less are the same data: tokens a request, of runs that failed a few."""


def differences(a: Sequence[Round], b: Sequence[Round]) -> tuple[Difference, ...]:
    """Facts whose values are not the same in both arms; several values of one arm stand side by side."""
    names = dict.fromkeys(name for one in (*a, *b) for name in one.facts)
    told = [(name, _values(a, name), _values(b, name)) for name in names]
    return tuple(Difference(name, one, other) for name, one, other in told if one != other)


def data_differences(a: Sequence[Round], b: Sequence[Round]) -> tuple[Difference, ...]:
    """Numbers of the data that differ between the arms; one that only one arm tells is no difference."""
    names = dict.fromkeys(name for one in (*a, *b) for name in one.data)
    found = []
    for name in names:
        one, other = ([r.data[name] for r in arm if name in r.data] for arm in (a, b))
        if one and other and not _same(one, other):
            found.append(Difference(name, _spelt(one), _spelt(other)))
    return tuple(found)


def undeclared(found: Iterable[Difference], declared: Collection[str]) -> list[Difference]:
    """Those that no declared name or pattern allows."""
    return [one for one in found if not is_declared(one.name, declared)]


def like_neither(
    again: Sequence[Round], arms: Iterable[Sequence[Round]], declared: Sequence[str]
) -> tuple[Difference, ...]:
    """In what A/A runs differ from the first arm, where they are made otherwise than either; else nothing."""
    names = [name for name in declared if name]
    apart = [(*undeclared(differences(arm, again), names), *data_differences(arm, again)) for arm in arms]
    return apart[0] if again and all(apart) else ()


def is_declared(name: str, declared: Collection[str]) -> bool:
    """Whether a fact, or the group that it is in, is among the declared names and patterns. What a server
    tells of a setting counts as that setting: `settings.decode_mode` as decode_mode."""
    last = name.rpartition(".")[2]
    return any(text == last or fnmatchcase(name, text) or name.startswith(f"{text}.") for text in declared)


def _values(rounds: Iterable[Round], name: str) -> str:
    return ", ".join(sorted({_fact(one.facts, name) for one in rounds}))


def _fact(facts: Mapping[str, str], name: str) -> str:
    return facts.get(name, ABSENT)


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether both arms have the same values: runs of one arm may differ where those of the other do, too."""
    if len(one) == len(other):
        return all(map(_alike, zip(sorted(one), sorted(other), strict=True)))
    sides = ((one, other), (other, one))
    return all(any(_alike((value, found)) for found in those) for these, those in sides for value in these)


def _alike(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= SAME_SHARE * max(map(abs, values))


def _spelt(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,.6g}" for value in sorted(set(values)))
