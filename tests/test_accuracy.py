"""How right answers are: word and character errors, exact matches, seconds of audio, and who is left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.item import Item
from layers.collectors.load.records import Audio, Outcome, Phase, RequestRecord
from layers.layer3_sweep.accuracy import (
    Metric,
    accuracy_of,
    answers_of,
    error_rate,
    normalised,
    usual_metric,
)
from layers.layer3_sweep.model import Accuracy
from tests.sweep_builders import record

ITEMS = {f"i{n}": Item(f"i{n}", text="x" * 10, expected=text) for n, text in enumerate(("a b c d", "e f"))}


def said(sequence: int, text: str, **other: object) -> RequestRecord:
    return record(sequence, 0, 1, text=text, item=f"i{sequence % 2}", **other)


def spoken(sequence: int, seconds: float, **other: object) -> RequestRecord:
    audio = Audio(seconds, 24000, int(seconds * 48000), f"digest {seconds}", 0.0)
    return record(sequence, 0, 1, audio=audio, **other)


def edits(expected: Sequence[str], got: Sequence[str]) -> int:
    """Levenshtein's distance, by its definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        changed = distance(i - 1, j - 1) + (expected[i - 1] != got[j - 1])
        return min(changed, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(expected), len(got))


TEXTS = st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(" ".join)


@given(st.lists(st.tuples(TEXTS, TEXTS | st.just("")), min_size=1, max_size=4))
def test_error_rates_are_edits_over_all_that_is_expected(pairs: list[tuple[str, str]]) -> None:
    words = sum(edits(e.split(), s.split()) for e, s in pairs) / sum(len(e.split()) for e, _ in pairs)
    characters = sum(edits(e, s) for e, s in pairs) / sum(len(e) for e, _ in pairs)
    assert error_rate(Metric.WER, pairs) == pytest.approx(words)
    assert error_rate(Metric.CER, pairs) == pytest.approx(characters)


def test_texts_are_compared_without_case_punctuation_and_width() -> None:
    assert normalised("  Don’t — STOP,  ﬁne!") == "don't stop fine"  # noqa: RUF001
    assert normalised("Ｈｉ（you）") == "hi you"  # noqa: RUF001
    assert normalised("...") == ""


def test_only_answers_are_judged_and_the_rest_is_counted() -> None:
    records = [
        said(0, "a b c x"),
        said(1, "e f"),
        said(2, "", outcome=Outcome.SHED),
        said(3, "", outcome=Outcome.UNFINISHED),
        said(4, "wrong", phase=Phase.WARMUP),
    ]
    assert accuracy_of(Metric.WER, records, ITEMS) == Accuracy("wer", 1 / 6, 2, 1)
    assert accuracy_of(Metric.EXACT, records, ITEMS) == Accuracy("exact-match", 0.5, 2, 1)


def test_a_request_that_was_retried_is_judged_by_its_last_attempt() -> None:
    records = [said(0, "", outcome=Outcome.SHED), said(0, "a b c d", attempt=2)]
    assert accuracy_of(Metric.WER, records, ITEMS) == Accuracy("wer", 0.0, 1, 0)


def test_nothing_to_judge_has_no_accuracy() -> None:
    unasked = {"i0": Item("i0", text="x"), "i1": Item("i1", expected="...")}
    assert accuracy_of(Metric.EXACT, [said(0, "a")], unasked) is None
    assert accuracy_of(Metric.WER, [said(0, "a"), said(1, "b")], unasked) is None
    assert accuracy_of(Metric.WER, [said(0, "", outcome=Outcome.SHED)], ITEMS) is None


def test_sound_is_compared_by_its_samples() -> None:
    answers = answers_of([spoken(0, 1.0), spoken(1, 2.0)])
    items = {item: Item(item, expected=digest) for item, digest in answers.of.items()}
    same, other = accuracy_of(Metric.EXACT, [spoken(1, 2.0)], items), [spoken(1, 1.9)]
    assert same == Accuracy("exact-match", 1.0, 1, 0)
    assert accuracy_of(Metric.EXACT, other, items) == Accuracy("exact-match", 0.0, 1, 0)


def test_an_item_that_is_answered_in_two_ways_expects_nothing() -> None:
    answers = answers_of([said(0, "a"), said(2, "b"), said(1, "c"), said(3, "c")])
    assert (dict(answers.of), answers.unstable) == ({"i1": "c"}, 1)


def test_audio_is_compared_item_by_item_with_the_least_load() -> None:
    least = [spoken(0, 1.0), spoken(1, 3.0), spoken(2, 9.0)]
    here = [spoken(0, 1.0), spoken(1, 1.0), spoken(3, 7.0), said(4, "", outcome=Outcome.EMPTY)]
    found = accuracy_of(Metric.AUDIO, here, {}, least)
    assert found == Accuracy("audio-seconds-ratio", 0.5, 3, 1)


def test_fresh_items_are_compared_by_seconds_a_character() -> None:
    items = {"a": Item("a", text="x" * 10), "b": Item("b", text="x" * 20)}
    here, least = [spoken(0, 2.0, item="b")], [spoken(0, 2.0, item="a")]
    assert accuracy_of(Metric.AUDIO, here, items, least) == Accuracy("audio-seconds-ratio", 0.5, 1, 0)
    assert accuracy_of(Metric.AUDIO, here, {}, least) is None
    assert accuracy_of(Metric.AUDIO, here, items, []) is None


@pytest.mark.parametrize(
    ("endpoint", "expected", "recurring", "metric"),
    [
        ("transcriptions", "some words that were said", True, Metric.WER),
        ("transcriptions", "这是一个没有空格的句子用来检查字符错误率是否被选择", True, Metric.CER),
        ("transcriptions", "", True, None),
        ("speech", "digest", True, Metric.EXACT),
        ("speech", "digest", False, Metric.AUDIO),
        ("speech", "", True, Metric.AUDIO),
        ("chat", "yes", False, Metric.EXACT),
        ("chat", "", False, None),
    ],
)
def test_what_accuracy_is_measured_by(
    endpoint: str, expected: str, recurring: bool, metric: Metric | None
) -> None:
    assert usual_metric(endpoint, [Item("a", text="x", expected=expected)], recurring) is metric
