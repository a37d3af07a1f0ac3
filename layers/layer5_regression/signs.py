"""What outputs say of themselves: was anything exercised that could have gone wrong? Pure.

Two arms of silence are the same bytes, and so are two arms that say "Sorry" to every item, or whose answers
all stop at the first token. Nor need different outputs mean different answers: B's may be A's in another
order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from layers.layer5_regression.audio import as_float
from layers.layer5_regression.model import Paired, Sample, Signs, is_answered
from parsers.output_model import INT24, TEXT_DTYPE, Kind, Output, Payload

CUT_REASONS = frozenset({"length", "max_tokens", "max_length", "max_new_tokens"})
"""Why an answer ended at a limit, in the words of OpenAI, vLLM, SGLang and TGI."""
Content = tuple[bytes, ...]
Sides = tuple[Sequence[Output], Sequence[Output]]


def signs_of(paired: Paired) -> Signs:
    """Of the samples that both arms have."""
    answered: Sides = (
        [one.a for one in paired.samples if is_answered(one.a)],
        [one.b for one in paired.samples if is_answered(one.b)],
    )
    cells = _by_item(answered[0])
    several = {item: by_cell for item, by_cell in cells.items() if len(by_cell) > 1}
    differing = [by_cell for by_cell in several.values() if len(set(by_cell.values())) > 1]
    return Signs(
        items=len({one.key[1] for one in paired.samples}),
        answered=_both(len, answered),
        alike=_both(_alike, answered),
        cut=_both(lambda side: sum(o.finish_reason in CUT_REASONS for o in side), answered),
        silent=_both(lambda side: sum(_is_silent(o) for o in side), answered),
        not_finite=_both(lambda side: sum(not _is_finite(o) for o in side), answered),
        swapped=_swapped(paired.different),
        load_dependent=len(differing),
        several_cells=len(several),
        cell_pairs=tuple(dict.fromkeys(_parting(by_cell) for by_cell in differing)),
    )


def _both(count: Callable[[Sequence[Output]], int], sides: Sides) -> tuple[int, int]:
    return count(sides[0]), count(sides[1])


def content(output: Output) -> Content:
    """What makes two outputs the same."""
    return tuple(payload.data for payload in output.payloads)


def _alike(outputs: Sequence[Output]) -> int:
    """Items whose output is the most common one: of one cell, since an item may come in several."""
    first = {one.item: content(one) for one in reversed(outputs)}
    return max(Counter(first.values()).values(), default=0)


def _by_item(outputs: Sequence[Output]) -> dict[str, dict[str, Content]]:
    found: dict[str, dict[str, Content]] = defaultdict(dict)
    for one in outputs:
        found[one.item].setdefault(one.cell, content(one))
    return found


def _parting(by_cell: dict[str, Content]) -> str:
    """The first two cells whose outputs differ."""
    (first, reference), *rest = by_cell.items()
    return f"{first} / {next(cell for cell, other in rest if other != reference)}"


def _is_silent(output: Output) -> bool:
    """A sound whose samples are all the same."""
    payload = output.payload(Kind.PCM)
    if payload is None or not payload.data:
        return False
    samples = as_float(payload)
    return bool(len(samples)) and bool((samples == samples[0]).all())


def _is_finite(output: Output) -> bool:
    return all(map(_finite, output.payloads))


def _finite(payload: Payload) -> bool:
    if payload.dtype in (TEXT_DTYPE, INT24):
        return True
    kind = np.dtype(payload.dtype)
    if kind.kind not in "fc":
        return True
    whole = len(payload.data) // kind.itemsize * kind.itemsize
    return bool(np.isfinite(np.frombuffer(payload.data[:whole], kind)).all())


def _swapped(different: Sequence[Sample]) -> int:
    """Samples of B whose output is A's for another item of the same cell, and not A's for this one."""
    of_a: dict[tuple[str, Content], set[str]] = defaultdict(set)
    for one in different:
        of_a[one.key[0], content(one.a)].add(one.key[1])
    answered = [one for one in different if is_answered(one.b) and content(one.b) != content(one.a)]
    return sum(bool(of_a[one.key[0], content(one.b)] - {one.key[1]}) for one in answered)
