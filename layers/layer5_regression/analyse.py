"""From arms of outputs to everything that is judged: pairs, cells, the negative control, accuracy. Pure.

Whether a cell can be judged by its bytes is found out first: only where a second run of A says the same as
the first, at that load, does a difference of B say anything about the change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from layers.layer5_regression.audio import heard
from layers.layer5_regression.model import (
    Accuracy,
    Analysis,
    Arm,
    Judged,
    Key,
    Options,
    Paired,
    Sample,
)
from layers.layer5_regression.negative_control import run_control
from layers.layer5_regression.pairing import pair
from layers.layer5_regression.signs import signs_of
from layers.layer5_regression.tolerance import against_expected, against_itself, within

NO_REPEAT = "no second run of A says whether it is deterministic at this load (--aa)"
NOT_PRESERVING = "the change is said not to preserve outputs (--tolerant)"


def analyse(a: Arm, b: Arm, aa: Arm | None, options: Options) -> Analysis:
    """Compare two arms; `aa` is a second run of A."""
    paired = heard(pair(a.outputs, b.outputs))
    repeated = heard(pair(a.outputs, aa.outputs)) if aa is not None else None
    names = list(dict.fromkeys(one.key[0] for one in paired.samples))
    cells = tuple(_judged(name, paired, repeated, options) for name in names)
    return Analysis(
        a=a,
        b=b,
        aa=aa,
        options=options,
        paired=paired,
        repeated=repeated,
        cells=cells,
        trials=tuple(run_control(a.outputs)),
        accuracy=_accuracy(paired, repeated, cells, options),
        signs=signs_of(paired),
    )


def _judged(name: str, paired: Paired, repeated: Paired | None, options: Options) -> Judged:
    """One cell: its counts, and whether its bytes can be judged."""
    samples = _of_cell(paired, name)
    again = _of_cell(repeated, name) if repeated is not None else None
    known = {one.key for one in repeated.samples} if repeated is not None else frozenset[Key]()
    why_not = _why_not_exact(samples, again, known, options)
    return Judged(
        cell=name,
        n=len(samples),
        different=_different(samples),
        outside=sum(not within(one.difference, options.max_lsb) for one in samples),
        aa_n=None if again is None else len(again),
        aa_different=None if again is None else _different(again),
        exact=not why_not,
        why_not=why_not,
    )


def _of_cell(paired: Paired, name: str) -> list[Sample]:
    return [one for one in paired.compared if one.key[0] == name]


def _different(samples: Sequence[Sample]) -> int:
    return sum(one.difference is not None for one in samples)


def _why_not_exact(
    samples: Sequence[Sample], again: Sequence[Sample] | None, known: Collection[Key], options: Options
) -> str:
    """Why the bytes of a cell cannot be judged; empty where they can. `known`: what A was asked twice, items
    that it answered neither time among it."""
    if not options.preserving:
        return NOT_PRESERVING
    if again is None:
        return NO_REPEAT
    if unknown := sum(one.key not in known for one in samples):
        return f"{unknown} of {len(samples)} samples were not asked of A twice"
    if differs := _different(again):
        return f"A differs from itself in {differs} of {len(again)} samples at this load"
    return ""


def _accuracy(
    paired: Paired, repeated: Paired | None, cells: Sequence[Judged], options: Options
) -> Accuracy | None:
    """Over the cells whose bytes cannot be judged; over all where there is none and answers were expected."""
    open_cells = {one.cell for one in cells if not one.exact}
    samples = [one for one in paired.compared if not open_cells or one.key[0] in open_cells]
    if (found := against_expected(samples)) is not None:
        return found
    if not open_cells or repeated is None:
        return None
    return against_itself(samples, repeated, options.max_lsb)
