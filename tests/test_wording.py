"""Numbers in words: the unit that suits a duration, and documents whose texts are clipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.wording import (
    MAX_TEXT_CHARACTERS,
    NAME_CHARACTERS,
    SHOWN_CHARACTERS,
    clipped,
    cut_middle,
    first_clause,
    readable,
    time_text,
)
from layers.layer1_gpu_busy.next_steps import BY_CAUSE

DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500_000, "1.5 ms"),
        (3600 * 10**9, "3600 s"),
        (2 * DAY_NS - 1, "172800 s"),
        (2 * DAY_NS, "2 days"),
        (46 * 10**17, "53,241 days"),
        (-46 * 10**17, "-53,241 days"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(ns: int, text: str) -> None:
    assert time_text(ns) == text


def test_texts_are_clipped_wherever_they_stand_in_a_document() -> None:
    long, just = "a" * 30_000 + "b" * 30_000, "c" * MAX_TEXT_CHARACTERS
    document = clipped({"list": [long, just, 1, None], "nested": {long: (True, 0.5)}, "short": "d"})
    [cut, kept, *numbers] = document["list"]
    assert kept == just and numbers == [1, None] and document["short"] == "d"
    assert cut.startswith("aaa") and cut.endswith("bbb") and "[clipped: 60,000 characters]" in cut
    assert len(cut) <= MAX_TEXT_CHARACTERS and document["nested"] == {cut: (True, 0.5)}


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (
            "Record again (a: b; c. d), with 2.4 or newer; else not.",
            "record again (a: b; c. d), with 2.4 or newer",
        ),
        ("Copy it. Or not.", "copy it"),
        ("No end", "no end"),
    ],
)
def test_the_first_clause_ends_at_a_stop_outside_brackets(text: str, clause: str) -> None:
    assert first_clause(text) == clause


def test_a_next_step_can_be_followed_by_another_sentence() -> None:
    assert not [text for text in BY_CAUSE.values() if text.endswith(("?", ".", "!"))]


def test_long_names_keep_both_ends_and_say_how_much_is_left_out() -> None:
    assert cut_middle("abcdefghij", 10) == "abcdefghij"
    assert cut_middle("abcdefghijk", 10) == "abcdef…ijk"
    assert cut_middle("a" * 40 + "b" * 60, 60) == f"{'a' * 39}…{'b' * 20}"
    cut = cut_middle("void kernel<" + "a" * 9_960 + ">::run", 60)
    assert cut.startswith("void kernel<a") and cut.endswith("a>::run") and len(cut) <= 60
    begin, count, end = cut.split("…")
    assert len(begin) + int(count.removesuffix(" more").replace(",", "")) + len(end) == 9_978


@given(st.text(), st.integers(4, 80))
def test_a_cut_never_has_more_characters_than_it_may(text: str, limit: int) -> None:
    assert len(cut_middle(text * 30, limit)) <= limit


@given(st.text())
def test_what_people_read_is_inert_and_bounded(text: str) -> None:
    for long in (text, text * 500, "x".join([text] * 900)):
        shown = readable(long)
        assert shown.isprintable() and len(shown) <= SHOWN_CHARACTERS
    assert len(readable(text * 500, NAME_CHARACTERS)) <= NAME_CHARACTERS


def test_a_long_word_in_a_sentence_is_cut_and_the_sentence_stays() -> None:
    shown = readable(f"waited for {'k' * 10_000} in step 3")
    assert shown.startswith("waited for kkk") and shown.endswith("kkk in step 3") and " more…" in shown
    assert len(shown) < NAME_CHARACTERS + 30
