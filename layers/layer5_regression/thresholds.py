"""The words of Layer 5's verdict and the rules that they are called by."""

from __future__ import annotations

from enum import StrEnum

from layers.evidence.guard import Effect
from layers.evidence.mcnemar import ALPHA
from layers.layer5_regression.model import Accuracy, Analysis


class Word(StrEnum):
    """The verdict."""

    IDENTICAL = "identical"
    """the same bytes, at loads at which A repeats itself byte by byte"""
    EQUIVALENT = "equivalent"
    """as right as before, by a comparison that could have told"""
    DIFFERENT = "different"
    INVALID = "invalid"


def word_of(analysis: Analysis) -> Word:
    """By bytes where they can be judged, else by right and wrong."""
    if any(one.exact and one.different for one in analysis.cells):
        return Word.DIFFERENT
    if not analysis.tolerant:
        return Word.IDENTICAL
    if analysis.outside and (analysis.accuracy is None or is_lost(analysis.accuracy, analysis)):
        return Word.DIFFERENT
    return Word.EQUIVALENT


def is_lost(accuracy: Accuracy, analysis: Analysis) -> bool:
    """Whether B is wrong more often: by McNemar, or by an error rate whose interval lies above the margin."""
    rates = accuracy.error_rates
    worse = accuracy.lost > accuracy.gained and accuracy.p_value <= ALPHA
    return worse or (rates is not None and rates.low > analysis.options.margin_share)


def of_a_pass(analysis: Analysis) -> Effect | None:
    """The effect of a guard that doubts what a comparison could have missed: it weakens a pass, and is a note
    beside a difference, which was not missed."""
    return Effect.NOTE if word_of(analysis) is Word.DIFFERENT else None


def is_resolved(analysis: Analysis) -> bool:
    """Whether a loss as large as the margin would have been found."""
    accuracy, margin = analysis.accuracy, analysis.options.margin_share
    if accuracy is None or accuracy.detectable_share is None or accuracy.detectable_share > margin:
        return False
    return accuracy.error_rates is None or accuracy.error_rates.high <= margin
