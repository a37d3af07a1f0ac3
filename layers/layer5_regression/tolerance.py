"""Judging answers that may differ: right or wrong on the same items, and what that could have found. Pure.

    text with an expected answer     right is what is expected, as WER compares it (normalised)
    anything else                    right is what A said; how often A differs from itself is the baseline

Either way each item is right or wrong in the baseline and in B, and McNemar's exact test asks whether B is
wrong more often. The item is the unit: one that is asked in several cells is right where all its answers are.
Sound may be off by a rounding: within MAX_LSB it is the same sound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from layers.collectors.load.item import Item
from layers.evidence.mcnemar import detectable_share, exact_p
from layers.evidence.statistics import TAIL
from layers.layer3_sweep.accuracy import Metric, error_rate, normalised, usual_metric
from layers.layer5_regression.model import (
    Accuracy,
    Difference,
    ErrorRates,
    Paired,
    Sample,
    What,
)
from parsers.output_model import Kind, Output
from parsers.series_model import F64

MAX_LSB = 1.0
"""Steps of 16 bits: a rounding the other way. More is another sound, which only a listener or a recogniser
can judge. perfkit's choice."""
RESAMPLES = 2000
SEED = 20_26
EXPECTED = "the expected answer, in the normal form of WER"
LIKE_A = "what A said"


def within(difference: Difference | None, max_lsb: float = MAX_LSB) -> bool:
    """Whether a sample of sound is off by no more than a rounding; of all else, whether it is the same."""
    if difference is None:
        return True
    sound = difference.audio
    return difference.what is What.CONTENT and sound is not None and sound.max_lsb <= max_lsb


def against_expected(samples: Sequence[Sample]) -> Accuracy | None:
    """B against A where texts were expected; None where none were. An item without an answer is wrong."""
    asked = [one for one in samples if one.a.expected and _has_text(one)]
    if not asked:
        return None
    items = _by_item(asked)
    right = [(all(_is_right(s.a) for s in item), all(_is_right(s.b) for s in item)) for item in items]
    return _accuracy(EXPECTED, right, _error_rates(items))


def against_itself(samples: Sequence[Sample], aa: Paired, max_lsb: float = MAX_LSB) -> Accuracy | None:
    """B against how often A differs from itself, over the samples that all three runs have."""
    same = {one.key: within(one.difference, max_lsb) for one in aa.compared}
    items = _by_item([one for one in samples if one.key in same])
    if not items:
        return None
    right = [
        (all(same[s.key] for s in item), all(within(s.difference, max_lsb) for s in item)) for item in items
    ]
    return _accuracy(LIKE_A, right, None)


def _by_item(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each item, in all cells and repeats."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for one in samples:
        found[one.key[1]].append(one)
    return list(found.values())


def _accuracy(right: str, pairs: Sequence[tuple[bool, bool]], rates: ErrorRates | None) -> Accuracy:
    lost = sum(base and not changed for base, changed in pairs)
    gained = sum(changed and not base for base, changed in pairs)
    return Accuracy(
        right=right,
        n=len(pairs),
        baseline_right=sum(base for base, _ in pairs),
        lost=lost,
        gained=gained,
        p_value=exact_p(lost, gained),
        detectable_share=detectable_share(len(pairs), lost, gained),
        error_rates=rates,
    )


def _has_text(sample: Sample) -> bool:
    return any(one.payload(Kind.TEXT) is not None for one in (sample.a, sample.b))


def text_of(output: Output) -> str:
    """What was answered as text; empty where it was not."""
    payload = output.payload(Kind.TEXT)
    return payload.data.decode("utf-8", "replace") if payload is not None and not output.error else ""


def _is_right(output: Output) -> bool:
    return normalised(text_of(output)) == normalised(output.expected)


def _error_rates(items: Sequence[Sequence[Sample]]) -> ErrorRates | None:
    """WER or CER of both arms, and the interval of their difference by drawing items again."""
    usable = [item for item in items if normalised(item[0].a.expected)]
    if not usable:
        return None
    expected = [Item(item[0].a.item, expected=item[0].a.expected) for item in usable]
    metric = usual_metric("transcriptions", expected, recurring=True) or Metric.WER
    sizes = np.array([sum(_size(metric, s.a.expected) for s in item) for item in usable], np.float64)
    a = sizes * [error_rate(metric, [(s.a.expected, text_of(s.a)) for s in item]) for item in usable]
    b = sizes * [error_rate(metric, [(s.a.expected, text_of(s.b)) for s in item]) for item in usable]
    low, high = _interval(b - a, sizes)
    total = float(sizes.sum())
    return ErrorRates(str(metric), float(a.sum()) / total, float(b.sum()) / total, low, high, len(usable))


def _size(metric: Metric, expected: str) -> int:
    """Words, or characters, of what is expected."""
    text = normalised(expected)
    return len(text) if metric is Metric.CER else len(text.split())


def _interval(errors: F64, sizes: F64) -> tuple[float, float]:
    """Of the sum of errors over that of sizes, items drawn again with replacement."""
    rng, n = np.random.default_rng(SEED), len(sizes)
    draws = (rng.integers(0, n, n) for _ in range(RESAMPLES))
    rates = [errors[drawn].sum() / sizes[drawn].sum() for drawn in draws]
    low, high = np.quantile(rates, [TAIL, 1 - TAIL])
    return float(low), float(high)
