"""Sets two arms beside each other, sample by sample. Pure.

The sets come first: an arm that lacks a sample, or has one twice, was not asked the same, and a comparison of
what both have would pass whatever was lost. The whole comparison is this one function, so that what is tried
on planted faults (`negative_control`) is what judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from layers.layer5_regression.compare import compare
from layers.layer5_regression.model import Key, Paired, Sample
from parsers.output_model import Output


def pair(a: Iterable[Output], b: Iterable[Output]) -> Paired:
    """Every key of both arms, in the order of A."""
    of_a, twice_a = _by_key(a)
    of_b, twice_b = _by_key(b)
    doubled = tuple(dict.fromkeys([*twice_a, *twice_b]))
    common = [key for key in of_a if key in of_b and key not in doubled]
    return Paired(
        tuple(Sample(key, of_a[key], of_b[key], compare(of_a[key], of_b[key])) for key in common),
        tuple(key for key in of_a if key not in of_b),
        tuple(key for key in of_b if key not in of_a),
        doubled,
    )


def _by_key(outputs: Iterable[Output]) -> tuple[dict[Key, Output], list[Key]]:
    """The first output of each key, and the keys of which there are several."""
    every = list(outputs)
    counts = Counter(one.key for one in every)
    first: dict[Key, Output] = {}
    for one in every:
        first.setdefault(one.key, one)
    return first, [key for key, times in counts.items() if times > 1]
