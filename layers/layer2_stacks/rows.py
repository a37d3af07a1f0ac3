"""The rows of one scope: leaves by line, by function and by package, and what each row adds up.

Lines come first: a function is not a cause. Since a tight loop spreads over its lines, and a library over its
functions, the roll-ups stand beside them, with the names that they merge. With --nolineno, where there is no
line, the function is the leaf.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from layers.collectors.stacks.frames import package, short
from layers.layer2_stacks.model import Part, Row, WaitKind
from layers.layer2_stacks.seen import Seen
from layers.layer2_stacks.shares import estimate
from parsers.stack_model import Frame

T = TypeVar("T")
Key = tuple[str, ...]
KeyOf = Callable[[Frame], Key]
PARTS = 5
"""Most parts that a row names: enough to see what it is made of."""


def line_key(leaf: Frame) -> Key:
    """File and line; the function, too, where there is no line."""
    return (leaf.file, str(leaf.line)) if leaf.line is not None else (leaf.file, "", short(leaf.function))


def function_key(leaf: Frame) -> Key:
    """File and function."""
    return leaf.file, short(leaf.function)


def package_key(leaf: Frame) -> Key:
    """The package."""
    return (package(leaf),)


@dataclass(slots=True)
class _Tally:
    hits: list[int]
    functions: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    callers: Counter[str] = field(default_factory=Counter)
    native: Counter[str] = field(default_factory=Counter)
    waits: Counter[WaitKind] = field(default_factory=Counter)

    def add(self, capture: int, seen: Seen, leaf: Frame) -> None:
        count = seen.stack.count
        self.hits[capture] += count
        self.functions[short(leaf.function)] += count
        self.lines[place(leaf)] += count
        if seen.caller is not None:
            self.callers[str(seen.caller)] += count
        if seen.native:
            self.native[seen.native[0]] += count
        if seen.wait is not None:
            self.waits[seen.wait] += count


def place(leaf: Frame) -> str:
    """`file:line`, or the file where there is no line."""
    return f"{leaf.file}:{leaf.line}" if leaf.line is not None else leaf.file or leaf.function


def rows_by(
    key_of: KeyOf,
    captures: Sequence[Sequence[Seen]],
    ticks: Sequence[int],
    samples: int,
    within: dict[Key, float | None] | None = None,
) -> tuple[Row, ...]:
    """All rows, most hits first. `ticks` of the scope per capture, `samples` of all threads; `within` holds
    design effects seen inside captures."""
    tallies: dict[Key, _Tally] = defaultdict(lambda: _Tally([0] * len(ticks)))
    for at, capture in enumerate(captures):
        for seen in capture:
            if seen.leaf is not None:
                tallies[key_of(seen.leaf)].add(at, seen, seen.leaf)
    rows = [
        _row(key_of, key, tally, ticks, samples, (within or {}).get(key)) for key, tally in tallies.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.share.hits, row.where, row.function)))


def _row(
    key_of: KeyOf, key: Key, tally: _Tally, ticks: Sequence[int], samples: int, within: float | None
) -> Row:
    share = estimate(tally.hits, ticks, within)
    wait = _most(tally.waits)
    merges = tally.lines if key_of is function_key else tally.functions
    return Row(
        where=_most(tally.lines) or "" if key_of is line_key else key[0],
        function="" if key_of is package_key else _most(tally.functions) or "",
        share=share,
        of_all=share.hits / samples,
        wait=wait,
        wait_hits=sum(tally.waits.values()),
        merges=parts(merges) if len(merges) > 1 else (),
        callers=parts(tally.callers),
        native=parts(tally.native),
    )


def _most(counts: Counter[T]) -> T | None:
    return min(counts, key=lambda name: (-counts[name], str(name)), default=None)


def parts(counts: Counter[T], limit: int | None = PARTS) -> tuple[Part, ...]:
    """The largest counts by name, most first; None: all of them."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(Part(str(name), hits) for name, hits in ordered[:limit])
