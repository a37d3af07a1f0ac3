"""Judging answers that may differ: right or wrong on the same items, and what that could have found. Pure.

    text with an expected answer     right is what is expected, as WER compares it (normalised)
    anything else                    right is what A said; how often A differs from itself is the baseline

Either way each item is right or wrong in the baseline and in B, and McNemar's exact test asks whether B is
wrong more often. Sound may be off by a rounding: within MAX_LSB it is the same sound.
"""

from __future__ import annotations

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
    Key,
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
    right = [(_is_right(one.a), _is_right(one.b)) for one in asked]
    return _accuracy(EXPECTED, right, _error_rates(asked))


def against_itself(samples: Sequence[Sample], aa: Paired, max_lsb: float = MAX_LSB) -> Accuracy | None:
    """B against how often A differs from itself, over the samples that all three runs have."""
    repeated: dict[Key, Difference | None] = {one.key: one.difference for one in aa.compared}
    common = [one for one in samples if one.key in repeated]
    if not common:
        return None
    right = [(within(repeated[one.key], max_lsb), within(one.difference, max_lsb)) for one in common]
    return _accuracy(LIKE_A, right, None)


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


def _error_rates(samples: Sequence[Sample]) -> ErrorRates | None:
    """WER or CER of both arms, and the interval of their difference by drawing utterances again."""
    usable = [one for one in samples if normalised(one.a.expected)]
    if not usable:
        return None
    items = [Item(one.a.item, expected=one.a.expected) for one in usable]
    metric = usual_metric("transcriptions", items, recurring=True) or Metric.WER
    sizes = np.array([_size(metric, item.expected) for item in items], np.float64)
    a = sizes * [error_rate(metric, [(one.a.expected, text_of(one.a))]) for one in usable]
    b = sizes * [error_rate(metric, [(one.a.expected, text_of(one.b))]) for one in usable]
    low, high = _interval(b - a, sizes)
    total = float(sizes.sum())
    return ErrorRates(str(metric), float(a.sum()) / total, float(b.sum()) / total, low, high, len(usable))


def _size(metric: Metric, expected: str) -> int:
    """Words, or characters, of what is expected."""
    text = normalised(expected)
    return len(text) if metric is Metric.CER else len(text.split())


def _interval(errors: F64, sizes: F64) -> tuple[float, float]:
    """Of the sum of errors over that of sizes, utterances drawn again with replacement."""
    drawn = np.random.default_rng(SEED).integers(0, len(sizes), (RESAMPLES, len(sizes)))
    rates = errors[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(rates, [TAIL, 1 - TAIL])
    return float(low), float(high)
