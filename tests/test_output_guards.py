"""Guards on recorded outputs: each fires on its trap and not on the nearest input without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layers.evidence.guard import Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer5_regression.analyse import analyse
from layers.layer5_regression.guards import OUTPUT_GUARDS
from layers.layer5_regression.judge import judge
from layers.layer5_regression.model import Options
from parsers.output_model import Kind, Output, Payload
from tests.output_builders import arm, compared, guard, said, sound, sounds, texts

TOLERANT = Options(preserving=False)


def is_void(result: Result, code: str) -> bool:
    found = guard(result, code)
    fired = found.fired and found.effect is Effect.VOID
    assert fired == (result.verdict.word == "invalid" and result.verdict.exit_code is Exit.INVALID)
    return fired


def test_a_sound_comparison_fires_nothing_and_passes() -> None:
    result = compared(texts(), texts(), texts())
    assert [g.code for g in result.guards if g.fired] == []
    assert (result.verdict.word, result.verdict.exit_code) == ("identical", Exit.OK)
    cells = [*texts(20, cell="a"), *texts(20, cell="b")]
    other = [*texts(20, {1: "x"}, cell="a"), *texts(20, cell="b")]
    asked = {
        g.code for g in compared(cells, other, [*texts(20, {2: "y"}, cell="a"), *texts(20, cell="b")]).guards
    }
    assert asked | {"PK574"} == {g.code for g in OUTPUT_GUARDS}


def test_pk550_nothing_to_compare() -> None:
    failed = [said(n, "", error="503") for n in range(30)]
    assert is_void(compared(failed, failed, failed), "PK550") and is_void(compared([], [], []), "PK550")
    assert not guard(compared(failed, texts(30), failed), "PK550").fired


def test_pk551_unequal_sets_of_either_arm_or_of_the_repeat() -> None:
    for arms in (
        (texts(39), texts(40), texts(39)),
        (texts(40), texts(39), texts(40)),
        (texts(), texts(), texts(39)),
    ):
        assert is_void(compared(*arms), "PK551")
    assert "1 sample only in A (i39)" in guard(compared(texts(40), texts(39), texts(40)), "PK551").message
    assert not guard(compared(texts(), texts(), texts()), "PK551").fired


def test_pk552_a_sample_twice() -> None:
    assert is_void(compared([*texts(), said(3)], texts(), texts()), "PK552")
    repeats = [*texts(), said(3, repeat=1)]
    assert not guard(compared(repeats, repeats, repeats), "PK552").fired


def test_pk553_a_comparison_that_cannot_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not guard(compared(texts(), texts(), texts()), "PK553").fired
    monkeypatch.setattr("layers.layer5_regression.pairing.compare", lambda a, b: None)
    result = compared(texts(), texts(40, {3: "other"}), texts())
    assert is_void(result, "PK553") and "one byte flipped: 0 of 40" in guard(result, "PK553").message
    assert result.findings == []


def test_pk554_bytes_are_judged_only_where_a_repeats_itself() -> None:
    alone = compared(texts(), texts())
    assert "because no second run of A" in guard(alone, "PK554").message
    unsteady = compared(texts(), texts(40, {3: "other"}), texts(40, {5: "other"}))
    assert "because A differs from itself in 1 of 40 samples" in guard(unsteady, "PK554").message
    assert guard(unsteady, "PK554").effect is Effect.NOTE and unsteady.verdict.word == "equivalent"
    assert not guard(compared(texts(), texts(40, {3: "other"}), texts()), "PK554").fired


def test_pk555_what_was_lost_of_an_arm() -> None:
    whole = arm("A", texts())
    cut = replace(whole, name="B", lost=("b.jsonl: line 41 was cut off",), missing=1)
    assert is_void(judge(analyse(whole, cut, whole, Options())), "PK555")
    assert not guard(judge(analyse(whole, replace(whole, name="B"), whole, Options())), "PK555").fired


def test_pk556_what_failed_in_both_arms_was_not_compared() -> None:
    both = [*texts(30), said(30, "", error="413: too long")]
    result = compared(both, both, both)
    assert guard(result, "PK556").fired and result.verdict.headline == "IDENTICAL?"
    assert result.verdict.exit_code is Exit.NO_CONCLUSION
    one = compared(texts(31), both, texts(31))
    assert not guard(one, "PK556").fired and one.verdict.word == "different"


def test_pk557_one_answer_to_everything() -> None:
    same = [said(n, "Sorry, I cannot do that.") for n in range(40)]
    assert is_void(compared(same, same, same), "PK557")
    many = [*same[:25], *texts(40)[25:]]
    result = compared(many, many, many)
    assert guard(result, "PK557").effect is Effect.DIRECTIONAL and result.verdict.directional
    few = [*same[:20], *texts(40)[20:]]
    assert not guard(compared(few, few, few), "PK557").fired


def test_pk558_silence() -> None:
    silence = [sound(n, [0] * (100 + n)) for n in range(30)]
    assert is_void(compared(silence, silence, silence), "PK558")
    one = [*sounds(29), silence[29]]
    assert guard(compared(one, one, one), "PK558").effect is Effect.NOTE
    assert not guard(compared(sounds(), sounds(), sounds()), "PK558").fired


def test_pk559_answers_that_all_stop_at_a_limit() -> None:
    cut = [replace(one, finish_reason="length") for one in texts()]
    result = compared(cut, cut, cut)
    assert guard(result, "PK559").effect is Effect.DIRECTIONAL and result.verdict.directional
    some = [*cut[:39], texts()[39]]
    assert guard(compared(some, some, some), "PK559").effect is Effect.NOTE
    assert not guard(compared(texts(), texts(), texts()), "PK559").fired


def numbers(value: float) -> list[Output]:
    data = [np.array([number, value], "<f4") for number in range(30)]
    payloads = [Payload(Kind.ARRAY, one.tobytes(), "<f4", one.shape) for one in data]
    return [Output(f"i{n}", payloads=(payload,)) for n, payload in enumerate(payloads)]


def test_pk560_nan_in_both_arms_is_the_same_bytes_and_no_pass() -> None:
    nan = numbers(float("nan"))
    result = compared(nan, nan, nan)
    assert is_void(result, "PK560") and result.sections["different"] == 0
    assert not guard(compared(numbers(0.5), numbers(0.5), numbers(0.5)), "PK560").fired
    minus_zero = compared(numbers(0.0), numbers(-0.0), numbers(0.0))
    assert not guard(minus_zero, "PK560").fired and minus_zero.verdict.word == "different"


def test_pk574_one_file_in_two_arms_is_no_comparison() -> None:
    own = [replace(arm(name, texts()), sources=frozenset({name})) for name in ("A", "B", "A'")]
    assert not guard(judge(analyse(own[0], own[1], own[2], Options())), "PK574").fired
    for copies in ((own[0], own[0], own[2]), (own[0], own[1], own[0])):
        result = judge(analyse(copies[0], copies[1], copies[2], Options()))
        assert guard(result, "PK574").fired and result.verdict.word == "invalid"


def test_pk561_few_samples_pass_only_as_a_hint() -> None:
    few = compared(texts(19), texts(19), texts(19))
    assert few.verdict.headline == "IDENTICAL?" and "14.6 % to differ" in guard(few, "PK561").message
    assert not guard(compared(texts(20), texts(20), texts(20)), "PK561").fired
    failed = compared(texts(5), texts(5, {2: "other"}), texts(5))
    assert (failed.verdict.headline, failed.verdict.exit_code) == ("DIFFERENT", Exit.FAILED)


def test_what_may_have_been_missed_weakens_a_pass_and_no_difference() -> None:
    """Few items, a sample that failed in both arms, answers that were all cut: one byte is different all the
    same."""
    cut = [replace(one, finish_reason="length") for one in texts(9)]
    both = [*cut, said(9, "", error="413: too long")]
    assert compared(both, both, both).verdict.headline == "IDENTICAL?"
    other = [replace(one, finish_reason="length") for one in texts(9, {2: "another answer"})]
    result = compared(both, [*other, both[-1]], both)
    assert {g.code: g.effect for g in result.guards if g.fired} == dict.fromkeys(
        ("PK556", "PK559", "PK561"), Effect.NOTE
    )
    assert (result.verdict.headline, result.verdict.exit_code) == ("DIFFERENT", Exit.FAILED)


def test_a_b_that_broke_wholly_is_different_and_not_invalid() -> None:
    """One answer to everything, silence or NaN in B alone: that is what a regression looks like."""
    silence = [sound(n, [0] * 2400) for n in range(40)]
    sorry = [said(n, "Sorry, I cannot do that.") for n in range(40)]
    broken = (
        (texts(), sorry, "PK557"),
        (sounds(), silence, "PK558"),
        (numbers(0.5), numbers(float("nan")), "PK560"),
    )
    for a, b, code in broken:
        result = compared(a, b, a)
        assert guard(result, code).fired and guard(result, code).effect is Effect.NOTE
        assert (result.verdict.headline, result.verdict.exit_code) == ("DIFFERENT", Exit.FAILED)


def test_pk562_answers_that_went_to_the_wrong_items() -> None:
    swapped = compared(
        texts(), texts(40, {3: "answer number 4 of the model", 4: "answer number 3 of the model"}), texts()
    )
    assert "2 samples of B" in guard(swapped, "PK562").message and swapped.verdict.word == "different"
    assert any("what A answered to other items" in f.statement for f in swapped.findings)
    assert not guard(compared(texts(), texts(40, {3: "other"}), texts()), "PK562").fired


def test_pk563_a_that_answers_otherwise_at_another_load() -> None:
    alone, crowd = texts(20, cell="c=1"), texts(20, {7: "other"}, cell="c=8")
    both = [*alone, *crowd]
    found = compared(both, both, both)
    assert "1 of 20 items otherwise in another cell (c=1 / c=8)" in guard(found, "PK563").message
    assert found.verdict.word == "identical"
    same = [*alone, *texts(20, cell="c=8")]
    assert not guard(compared(same, same, same), "PK563").fired


def test_pk564_differences_that_nobody_can_put_down_to_the_change() -> None:
    result = compared(texts(), texts(40, {3: "other"}))
    assert guard(result, "PK564").fired and result.verdict.headline == "DIFFERENT?"
    assert result.verdict.exit_code is Exit.NO_CONCLUSION
    assert not guard(compared(texts(), texts()), "PK564").fired
    assert not guard(compared(texts(), texts(40, {3: "other"}), texts(40, {5: "other"})), "PK564").fired


def test_pk565_a_margin_that_so_few_items_cannot_resolve() -> None:
    narrow = compared(texts(), texts(40, {3: "other"}), texts(40, {5: "other"}))
    assert guard(narrow, "PK565").fired and narrow.verdict.headline == "EQUIVALENT?"
    wide = compared(texts(), texts(40, {3: "other"}), texts(40, {5: "other"}), Options(margin_share=0.4))
    assert not guard(wide, "PK565").fired
    assert (wide.verdict.headline, wide.verdict.exit_code) == ("EQUIVALENT", Exit.OK)
