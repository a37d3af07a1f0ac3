"""Two outputs of one item: the first thing in which they differ, and where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer5_regression.audio import heard
from layers.layer5_regression.compare import compare, first_differing_byte
from layers.layer5_regression.model import Difference, What
from layers.layer5_regression.negative_control import run_control
from layers.layer5_regression.pairing import pair
from parsers.output_model import Kind, Output, Payload
from tests.output_builders import said, samples_of, sound, sounds, texts


def difference(a: Output, b: Output) -> Difference:
    """As it is judged: with how far sounds are apart."""
    (found,) = heard(pair([a], [b])).samples
    assert found.difference is not None and compare(a, b) == replace(found.difference, audio=None)
    return found.difference


def ids(values: list[int]) -> Output:
    data = np.array(values, "<i8")
    return Output("i", payloads=(Payload(Kind.TOKENS, data.tobytes(), "<i8", data.shape),))


def floats(values: list[float]) -> Output:
    data = np.array(values, "<f4")
    return Output("i", payloads=(Payload(Kind.ARRAY, data.tobytes(), "<f4", data.shape),))


def test_the_same_bytes_are_no_difference() -> None:
    assert compare(said(1), said(1)) is None and compare(sound(1), sound(1)) is None


def test_an_answer_that_was_cut_is_a_length_and_not_a_match() -> None:
    found = difference(said(1, "one two three"), said(1, "one two"))
    assert (found.what, found.at, found.unit, found.lengths) == (What.LENGTH, 7, "character", (13, 7))


def test_the_finish_reason_goes_before_the_content_and_the_place_is_told_all_the_same() -> None:
    found = difference(said(1, "one two"), replace(said(1, "one, two"), finish_reason="length"))
    assert (found.what, found.a, found.b, found.at) == (What.FINISH, "stop", "length", 3)


def test_token_counts_go_before_the_text() -> None:
    found = difference(replace(said(1), tokens=10), replace(said(1), tokens=9))
    assert (found.what, found.lengths, found.at) == (What.TOKENS, (10, 9), None)
    assert compare(replace(said(1), tokens=10), said(1)) is None


@pytest.mark.parametrize(
    ("error", "text", "told"), [("503: full", "", "503: full"), ("", "", "an empty answer")]
)
def test_one_that_was_not_answered_differs_by_that(error: str, text: str, told: str) -> None:
    found = difference(said(1), replace(said(1, text), error=error))
    assert (found.what, found.a, found.b) == (What.ENDED, "answered", told)


def test_a_place_in_text_counts_characters_of_any_script() -> None:
    found = difference(said(1, "grüße aus köln"), said(1, "grüße aus kiel"))
    assert (found.at, found.a, found.b) == (11, "grüße aus k|öln", "grüße aus k|iel")


def test_ids_and_their_place() -> None:
    found = difference(ids([5, 6, 7, 8]), ids([5, 6, 9, 8]))
    assert (found.what, found.at, found.unit, found.a, found.b) == (What.CONTENT, 2, "token", "7 8", "9 8")
    assert difference(ids([5]), ids([5, 6])).a == "the end"


def test_a_row_of_codes_is_one_place() -> None:
    codes = np.arange(24, dtype="<i8").reshape(8, 3)
    other = codes.copy()
    other[5, 2] += 1
    a, b = (Output("i", payloads=(Payload(Kind.CODES, c.tobytes(), "<i8", c.shape),)) for c in (codes, other))
    assert (difference(a, b).at, difference(a, b).unit) == (5, "row")


def test_bytes_decide_and_not_numbers() -> None:
    """NaN is what its bytes are; -0.0 is not 0.0."""
    assert compare(floats([float("nan"), 1]), floats([float("nan"), 1])) is None
    assert difference(floats([0.0, 1]), floats([-0.0, 1])).at == 0


@pytest.mark.parametrize("values", [["a", "bc"], [True, False], [1 + 2j, 3], [b"x", b"y"]])
def test_arrays_of_any_type_are_compared_and_shown(values: list[object]) -> None:
    one, other = np.array(values), np.array(values[::-1])
    a, b = (
        Output("i", payloads=(Payload(Kind.ARRAY, x.tobytes(), x.dtype.str, x.shape),)) for x in (one, other)
    )
    assert difference(a, b).at == 0 and difference(a, b).a


def test_type_shape_rate_and_kind_go_before_bytes() -> None:
    payload = sound(1).payloads[0]
    other = replace(payload, rate_hz=16_000)
    assert difference(sound(1), Output("i1", payloads=(other,))).what is What.RATE
    stereo = replace(payload, shape=(payload.shape[0] // 2, 2))
    assert difference(sound(1), Output("i1", payloads=(stereo,))).what is What.SHAPE
    wide = replace(payload, dtype="<i4")
    assert difference(sound(1), Output("i1", payloads=(wide,))).what is What.DTYPE
    assert difference(said(1), replace(sound(1), finish_reason="stop")).what is What.KIND


def test_a_sound_differs_at_a_frame_and_by_so_much() -> None:
    changed = samples_of(sound(1))
    changed[1200] += 3
    found = difference(sound(1), sound(1, changed.tolist()))
    assert (found.at, found.unit, found.at_ms) == (1200, "frame", 50.0)
    assert found.audio is not None and found.audio.max_lsb == pytest.approx(3)
    assert found.audio.lag_frames == 0 and found.audio.equal_share == pytest.approx(1 - 1 / 2400)
    signal = float(np.sum(samples_of(sound(1)).astype(float) ** 2))
    assert found.audio.snr_db == pytest.approx(10 * np.log10(signal / 9))


@pytest.mark.parametrize("lag", [1, 37, -5])
def test_a_shift_is_found_where_snr_alone_says_another_sound(lag: int) -> None:
    made = np.random.default_rng(1).integers(-9000, 9000, 2400)
    moved = np.roll(made, lag)
    found = difference(sound(1, made.tolist()), sound(1, moved.tolist())).audio
    assert found is not None and found.lag_frames == lag
    assert found.snr_db is not None and found.snr_db < 0
    assert found.aligned_snr_db is None or found.aligned_snr_db > 60


def test_a_sound_that_is_longer_is_a_length_whatever_its_beginning() -> None:
    longer = [*samples_of(sound(1)).tolist(), 0, 0]
    found = difference(sound(1), sound(1, longer))
    assert (found.what, found.at, found.lengths, found.b) == (What.LENGTH, 2400, (2400, 2402), "0 0")
    assert found.audio is not None and found.audio.frames == (2400, 2402)


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_the_first_differing_byte_is_that_of_a_walk(a: bytes, b: bytes) -> None:
    walked = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert first_differing_byte(a, b) == walked


def test_sets_are_paired_by_key_and_what_has_no_partner_is_told() -> None:
    found = pair([said(1), said(2), said(3), said(3)], [said(2), said(1), said(3), said(4)])
    assert [one.key[1] for one in found.samples] == ["i1", "i2"]
    assert (found.only_a, found.only_b, found.doubled) == ((), (("", "i4", 0),), (("", "i3", 0),))


def test_an_item_in_two_cells_is_two_samples() -> None:
    cells = [said(1, cell="c=1"), said(1, cell="c=8")]
    found = pair(cells, [said(1, "another", cell="c=8"), said(1, cell="c=1")])
    assert [one.key[0] for one in found.different] == ["c=8"] and found.doubled == ()


def test_planted_faults_are_all_caught() -> None:
    for outputs in (texts(12), sounds(12), [ids([n, 1]) for n in range(1)]):
        trials = run_control(outputs)
        assert trials and all(trial.caught == trial.times for trial in trials)
    assert [t.planted for t in run_control(texts(3))] == [
        "one byte flipped",
        "the end of one output cut",
        "another finish reason",
        "one sample left out",
        "one sample doubled",
        "two outputs swapped",
    ]
    assert run_control([said(1, "")]) == []


def test_a_comparison_that_cannot_fail_does_not_pass_its_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layers.layer5_regression.pairing.compare", lambda a, b: None)
    flipped = run_control(texts(5))[0]
    assert (flipped.times, flipped.caught) == (5, 0)
