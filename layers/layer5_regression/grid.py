"""The ways in which every item is asked, and which of them a comparison lacks. Pure.

    concurrency   1 and N; and k and k + 1 around the edge of a graph's bucket
    cache         cold: emptied before; warm: right after, every item once more
    stream        the answer in one piece, and as it is made

Faults of caches, padded graphs and batches show in one of these and in no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from layers.layer5_regression.model import Cell
from parsers.errors import UsageError

COLD, WARM, FIRST = "cold", "warm", "first"
"""`first`: the first requests that a server answers at all, with no warm-up before them."""
MOST = 256


def grid(concurrencies: Sequence[int], streams: Sequence[bool], *, starts: bool) -> tuple[Cell, ...]:
    """Every cell in the order of asking; `starts`: whether a server is started for it, so that there is a
    first request."""
    first = [Cell(1, FIRST, streams[0])] if starts else []
    rest = (Cell(n, cache, stream) for stream in streams for n in concurrencies for cache in (COLD, WARM))
    return (*first, *rest)


def concurrencies(text: str) -> tuple[int, ...]:
    """`1,4,5,16` in rising order; UsageError for what is no such list."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and 1 <= int(word) <= MOST for word in words):
        raise UsageError(f"--concurrency {text}: give numbers from 1 to {MOST}, as 1,4,5,16")
    return tuple(sorted({int(word) for word in words}))


def lacking(cells: Iterable[Cell]) -> list[str]:
    """What of the grid was not asked, in words."""
    asked = list(cells)
    numbers = sorted({cell.concurrency for cell in asked})
    caches, streams = {cell.cache for cell in asked}, {cell.stream for cell in asked}
    told = {
        "concurrency 1": 1 in numbers,
        "concurrency above 1": any(n > 1 for n in numbers),
        "both sides of a bucket (k and k + 1)": any(b == a + 1 and a > 1 for a, b in pairwise(numbers)),
        "a cold cache": COLD in caches,
        "a warm cache": WARM in caches,
        "streamed answers": True in streams,
        "answers in one piece": False in streams,
    }
    return [what for what, there in told.items() if not there]
