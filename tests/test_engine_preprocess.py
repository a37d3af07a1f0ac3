"""From a text to a prompt of the engine's decoder, and back from ids."""

from __future__ import annotations

import pytest

from sample_engine.models.sizes import AR_SIZES
from sample_engine.scheduling.request import Request
from sample_engine.stages.payloads import EOS_ID
from sample_engine.stages.preprocess import FRAMES_A_WORD, TooLong, prompt_of, syllable_of

SMALL = AR_SIZES["small"]


def asked(text: str, max_steps: int = 0) -> Request:
    return Request("r", "speech", text=text, max_steps=max_steps)


def test_the_number_of_steps_is_a_function_of_the_text() -> None:
    prompt = prompt_of(asked(" a few\nwords "), SMALL)
    assert (len(prompt.text_ids), prompt.steps) == (3, 3 * FRAMES_A_WORD)
    assert prompt_of(asked("a few words", max_steps=4), SMALL).steps == 4


def test_equal_words_have_equal_ids_and_keys() -> None:
    prompt = prompt_of(asked("one two one"), SMALL)
    for values in (prompt.text_ids, prompt.keys):
        assert values[0] == values[2] != values[1]


def test_what_always_fits_fits_and_one_word_more_says_so() -> None:
    most = (SMALL.positions + 1) // (FRAMES_A_WORD + 1)
    assert prompt_of(asked("word " * most), SMALL).steps == most * FRAMES_A_WORD
    with pytest.raises(TooLong, match=f"{most} words always fit"):
        prompt_of(asked("word " * (most + 1)), SMALL)


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="no words"):
        prompt_of(asked(" \n"), SMALL)


def test_every_id_has_its_own_syllable_and_the_end_has_none() -> None:
    assert len({syllable_of(one) for one in range(SMALL.text_ids)}) == SMALL.text_ids
    assert syllable_of(EOS_ID) == ""
