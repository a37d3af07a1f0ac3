"""What the keys of rows must hold, whatever the function is: properties, each with its numbers. Pure.

Two keys may be equal though their rows differ: n rows and M keys give about n^2 / 2M such pairs, and their
number is Poisson's. More than its interval means that the function tells apart less than it could; a function
that a cache goes by then serves one request what another one asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layers.evidence.wording import counted
from layers.layer5_regression.key_rows import BASE_ROWS, EXPECTED_COLLISIONS, KeySpec, Rows
from parsers.trace_model import I64

DETERMINISTIC, ORDER, COLLISIONS = "deterministic", "order-matters", "collisions"
SEEN = int(EXPECTED_COLLISIONS)
INTERVAL = 0.99
"""Of the Poisson count: one good function in 100 is outside, and the rows are always the same."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property of the keys, whether it holds, over how many rows, and what was seen."""

    name: str
    holds: bool
    n: int
    seen: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of all rows, asked in order, and asked again in another order in another process."""

    first: I64
    again: I64


def properties_of(spec: KeySpec, rows: Rows, keys: Keys) -> list[Property]:
    """Every property, in the order in which a fault should be looked for."""
    groups = _grouped(rows, keys.first)
    ordinary = np.concatenate([groups[name] for name in ("random", "base", "changed", "permuted")])
    checks = [
        _deterministic(keys),
        _in_range(spec, ordinary),
        _reserved_kept(rows, groups["reserved"]),
        _apart_from_reserved(spec, ordinary),
        _tells_apart(spec, "channels-matter", "one channel changed", groups["base"], groups["changed"]),
        _collides(spec, groups["random"]),
    ]
    if spec.channels > 2:
        two = "two channels exchanged"
        checks.append(_tells_apart(spec, ORDER, two, groups["base"], groups["permuted"]))
    return [one for one in checks if one is not None]


def _grouped(rows: Rows, keys: I64) -> dict[str, I64]:
    names = ("random", "base", "changed", "permuted", "reserved")
    ends = np.cumsum([len(getattr(rows, name)) for name in names])
    return dict(zip(names, np.split(keys, ends[:-1]), strict=True))


def _deterministic(keys: Keys) -> Property:
    differ = int((keys.first != keys.again).sum())
    seen = f"{differ:,} of {counted(len(keys.first), 'row')} have another key in another process and order"
    return Property(DETERMINISTIC, differ == 0, len(keys.first), seen)


def _in_range(spec: KeySpec, keys: I64) -> Property:
    out = int(((keys < 0) | (keys >= spec.range)).sum())
    low, high = int(keys.min()), int(keys.max())
    seen = f"{out:,} outside 0 to {spec.range - 1:,}; seen {low:,} to {high:,}"
    return Property("in-range", out == 0, len(keys), seen)


def _reserved_kept(rows: Rows, keys: I64) -> Property | None:
    if not len(keys):
        return None
    changed = int((keys != rows.reserved[:, 0]).sum())
    seen = f"{changed:,} of {counted(len(keys), 'row')} that begin with a reserved id have another key"
    return Property("reserved-kept", changed == 0, len(keys), seen)


def _apart_from_reserved(spec: KeySpec, keys: I64) -> Property | None:
    if not spec.reserved:
        return None
    taken = int(np.isin(keys, spec.reserved).sum())
    return Property(
        "reserved-free", taken == 0, len(keys), f"{taken:,} ordinary rows have a reserved id as key"
    )


def _tells_apart(spec: KeySpec, name: str, how: str, base: I64, other: I64) -> Property:
    """Rows against changed copies of themselves: each pair shares a key with chance 1/M."""
    same, n = int((base == other).sum()), len(base)
    low, high = poisson_interval(n / spec.range)
    seen = f"{same:,} of {counted(n, 'row')} keep their key with {how}; by chance {low:,} to {high:,}"
    return Property(name, same <= high, n, seen)


def _collides(spec: KeySpec, keys: I64) -> Property:
    """Pairs of rows with one key against what so many rows give by chance."""
    n = len(keys)
    _, times = np.unique(keys, return_counts=True)
    pairs = int((times * (times - 1) // 2).sum())
    expected = n * (n - 1) / 2 / spec.range
    low, high = poisson_interval(expected)
    seen = (
        f"{pairs:,} pairs of {counted(n, 'row')} share a key; n²/2M is {expected:.3g} ({low:,} to {high:,})"
    )
    return Property(COLLISIONS, pairs <= high, n, seen)


def poisson_interval(expected: float) -> tuple[int, int]:
    """The least and the most that such a count is in INTERVAL of cases."""
    from scipy.stats import poisson

    tail = (1 - INTERVAL) / 2
    return int(poisson.ppf(tail, expected)), int(poisson.isf(tail, expected))


def broken(properties: Sequence[Property]) -> list[Property]:
    return [one for one in properties if not one.holds]


def self_test(spec: KeySpec, rows: Rows, keys: Keys) -> Iterator[tuple[str, bool]]:
    """Faults planted into the very keys, and whether each breaks the property that it should."""
    for planted, (name, change) in PLANTED.items():
        changed = change(spec, rows, keys)
        if changed is not None:
            found = {one.name for one in broken(properties_of(spec, rows, changed))}
            yield planted, name in found


Change = Callable[[KeySpec, Rows, Keys], Keys | None]


def _other(spec: KeySpec, rows: Rows, keys: Keys) -> Keys:
    again = keys.again.copy()
    again[0] += 1
    return Keys(keys.first, again)


def _outside(spec: KeySpec, rows: Rows, keys: Keys) -> Keys:
    first = keys.first.copy()
    first[0] = spec.range
    return Keys(first, first)


def _lost_reserved(spec: KeySpec, rows: Rows, keys: Keys) -> Keys | None:
    if not len(rows.reserved):
        return None
    first = keys.first.copy()
    first[-1] = 0 if rows.reserved[-1, 0] else 1
    return Keys(first, first)


def _unordered(spec: KeySpec, rows: Rows, keys: Keys) -> Keys | None:
    if spec.channels < 3:
        return None
    first, start, n = keys.first.copy(), len(rows.random), len(rows.base)
    first[start + 2 * n : start + 3 * n] = first[start : start + n]
    return Keys(first, first)


def _halved(spec: KeySpec, rows: Rows, keys: Keys) -> Keys:
    """A quarter of the keys: four times the collisions. Of so many keys that a quarter of them gives none to
    be seen, as few as give some: the birthday bound is what cannot show there, not the comparison."""
    first, n = keys.first.copy(), len(rows.random)
    most = n * n // (2 * SEEN) if n >= BASE_ROWS else spec.range
    first[:n] //= max(4, spec.range // max(1, most))
    return Keys(first, first)


PLANTED: dict[str, tuple[str, Change]] = {
    "one key another time another": (DETERMINISTIC, _other),
    "one key out of range": ("in-range", _outside),
    "one reserved id lost": ("reserved-kept", _lost_reserved),
    "order ignored": (ORDER, _unordered),
    "a quarter of the keys used": (COLLISIONS, _halved),
}
