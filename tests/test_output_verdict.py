"""From two arms to a word: by bytes where A repeats itself, else by right and wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layers.evidence.finding import Strength
from layers.evidence.mcnemar import detectable_share, exact_p, unseen_share
from layers.evidence.verdict import Exit
from layers.layer5_regression.model import Options
from parsers.output_model import Output
from tests.output_builders import compared, said, samples_of, sound, sounds, texts

TOLERANT = Options(preserving=False, margin_share=0.02)


def answers(n: int, wrong: range | None = None) -> list[Output]:
    """Answers to items whose right answer is known; those in `wrong` are not it."""
    off = wrong or range(0)
    return [
        said(
            i,
            f"The number is {i}, I think." if i not in off else "no idea",
            expected=f"the number is {i} i think",
        )
        for i in range(n)
    ]


def test_one_byte_of_one_sample_is_different_and_says_where() -> None:
    result = compared(sounds(), sounds(40, {7: _bumped(7, 1000, 1)}), sounds())
    assert (result.verdict.word, result.verdict.exit_code) == ("different", Exit.FAILED)
    first = result.sections["first_divergence"]
    assert (first["item"], first["what"], first["at"], first["unit"]) == ("i7", "content", 1000, "frame")
    assert first["audio"]["max_lsb"] == pytest.approx(1) and first["aa_same"] is True
    assert [one["item"] for one in result.sections["samples"] if not one["same"]] == ["i7"]
    assert "First: i7" in result.verdict.because and "agree in all 40" in result.verdict.because
    assert result.findings[0].strength is Strength.STRONG


def test_identical_is_strong_with_its_bound() -> None:
    result = compared(texts(), texts(), texts())
    assert result.findings[0].strength is Strength.STRONG and result.sections["first_divergence"] is None
    (bound,) = [m for m in result.measurements if m.name == "unseen_share"]
    assert bound.value == pytest.approx(1 - 0.05 ** (1 / 40)) and bound.n == 40


def test_the_same_bytes_without_a_second_run_of_a_are_equivalent_and_not_more() -> None:
    result = compared(texts(), texts())
    assert (result.verdict.word, result.verdict.exit_code) == ("equivalent", Exit.OK)
    assert "not judged bit-exact" in result.verdict.because


def test_one_cell_that_repeats_itself_is_judged_by_bytes_beside_one_that_does_not() -> None:
    steady, unsteady = texts(20, cell="c=1"), texts(20, cell="c=8")
    again = [*steady, *texts(20, {3: "other"}, cell="c=8")]
    changed = [*texts(20, {5: "other"}, cell="c=1"), *unsteady]
    result = compared([*steady, *unsteady], changed, again)
    assert result.verdict.word == "different"
    assert [one["exact"] for one in result.sections["cells"]] == [True, False]
    result = compared([*steady, *unsteady], [*steady, *unsteady], again)
    assert result.verdict.word == "equivalent"


def test_a_rounding_of_sound_is_equivalent_where_bytes_are_not_what_counts() -> None:
    bumped = sounds(40, {n: _bumped(n, 100 + n, 1) for n in range(40)})
    assert compared(sounds(), bumped, sounds(), TOLERANT).verdict.word == "equivalent"
    louder = sounds(40, {n: _bumped(n, 100 + n, 2) for n in range(40)})
    assert compared(sounds(), louder, sounds(), TOLERANT).verdict.word == "different"
    shorter = sounds(40, {n: samples_of(sound(n))[:-1].tolist() for n in range(40)})
    assert compared(sounds(), shorter, sounds(), TOLERANT).verdict.word == "different"


def test_accuracy_decides_where_the_right_answers_are_known() -> None:
    lost = compared(answers(600), answers(600, range(40)), options=TOLERANT)
    assert (lost.verdict.word, lost.verdict.exit_code) == ("different", Exit.FAILED)
    accuracy = lost.sections["accuracy"]
    assert (accuracy["n"], accuracy["lost"], accuracy["gained"]) == (600, 40, 0)
    assert accuracy["p_value"] < 1e-6 and accuracy["error_rates"]["metric"] == "wer"
    assert accuracy["error_rates"]["low"] > 0.02
    lenient = Options(preserving=False, margin_share=0.03)
    flips = compared(answers(600, range(3)), answers(600, range(3, 6)), options=lenient)
    assert (flips.verdict.word, flips.verdict.directional) == ("equivalent", False)
    assert flips.findings[0].rule.startswith("as printed, with the detectable difference")


def test_an_item_is_the_unit_however_many_cells_it_comes_in() -> None:
    """Three items wrong in four cells each are three losses, not twelve."""
    cells = ("c=1", "c=4", "c=5", "c=16")
    a = [replace(one, cell=cell) for cell in cells for one in answers(40)]
    b = [replace(one, cell=cell) for cell in cells for one in answers(40, range(3))]
    accuracy = compared(a, b, options=TOLERANT).sections["accuracy"]
    assert (accuracy["n"], accuracy["lost"], accuracy["error_rates"]["n"]) == (40, 3, 40)
    assert accuracy["p_value"] == pytest.approx(0.25)


def test_b_that_differs_more_than_a_from_itself_is_different() -> None:
    """27 of 800 between two runs of one build; as many more is a change, as many is none."""
    again = texts(800, dict.fromkeys(range(27), "other"))
    as_much = texts(800, dict.fromkeys(range(100, 127), "else"))
    more = texts(800, dict.fromkeys(range(100, 180), "else"))
    margin = Options(margin_share=0.033)
    same = compared(texts(800), as_much, again, margin)
    assert (same.verdict.word, same.verdict.directional) == ("equivalent", False)
    assert compared(texts(800), more, again, margin).verdict.word == "different"


@given(st.sets(st.integers(0, 39), min_size=1), st.integers(0, 2399), st.integers(1, 255))
@settings(max_examples=40, deadline=None)
def test_any_byte_of_any_samples_is_found_at_its_place(items: set[int], at: int, by: int) -> None:
    changed = {number: _xored(number, at, by) for number in items}
    result = compared(sounds(), sounds(40, changed), sounds())
    assert result.verdict.word == "different" and result.verdict.exit_code is Exit.FAILED
    differ = [one for one in result.sections["samples"] if not one["same"]]
    assert {one["item"] for one in differ} == {f"i{number}" for number in items}
    assert {one["at"] for one in differ} == {at}


@pytest.mark.parametrize(
    ("lost", "gained", "p"), [(5, 0, 0.0625), (6, 0, 0.03125), (12, 3, 0.0352), (0, 0, 1.0)]
)
def test_mcnemar_is_the_exact_binomial(lost: int, gained: int, p: float) -> None:
    assert exact_p(lost, gained) == pytest.approx(p, abs=1e-4) == exact_p(gained, lost)


@pytest.mark.parametrize(("n", "flips"), [(200, 6), (1000, 0), (60, 2)])
def test_a_loss_as_large_as_the_detectable_one_is_found_in_four_of_five_cases(n: int, flips: int) -> None:
    share = detectable_share(n, flips, flips)
    assert share is not None
    drawn = np.random.default_rng(7).random((4000, n))
    lost = (drawn < share + flips / n).sum(axis=1)
    gained = ((drawn >= share + flips / n) & (drawn < share + 2 * flips / n)).sum(axis=1)
    found = [exact_p(int(b), int(c)) <= 0.05 and b > c for b, c in zip(lost, gained, strict=True)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.025)


def test_five_items_cannot_show_any_loss() -> None:
    assert detectable_share(5, 0, 0) is None and detectable_share(0, 0, 0) is None
    assert unseen_share(300) == pytest.approx(0.00994, abs=1e-5)


def _xored(number: int, at: int, by: int) -> list[float]:
    made = samples_of(sound(number))
    made[at] ^= by
    return [float(one) for one in made]


def _bumped(number: int, at: int, by: int) -> list[float]:
    made = samples_of(sound(number))
    made[at] += by
    return [float(one) for one in made]
