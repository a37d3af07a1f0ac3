"""The catalogue as a whole: every entry is complete, and every trace gets an answer from each."""

from layers.evidence.symptom import PROPOSED, Condition, Seen, all_of, any_of
from layers.evidence.wording import counted, time_text
from layers.layer1_gpu_busy.symptoms.catalogue import CATALOGUE, check_symptoms
from layers.layer1_gpu_busy.symptoms.facts import HTA, TRACELENS
from tests.builders import kernel, trace_of
from tests.symptom_builders import facts_of

CODES = ["S1", "S1b", "S2", "S3", "S3b", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12"]


def test_the_catalogue_holds_each_code_once_in_order() -> None:
    assert [rule.code for rule in CATALOGUE] == CODES


def test_every_entry_says_what_it_means_and_what_would_disprove_it() -> None:
    for rule in CATALOGUE:
        texts = (rule.title, rule.threshold, rule.usual_cause, rule.look_next, rule.disproof)
        assert all(text and not text.endswith(" ") for text in texts), rule.code
        assert any(source in rule.threshold_source for source in (TRACELENS, HTA, PROPOSED)), rule.code


def test_a_trace_of_one_kernel_gets_an_answer_from_each_entry() -> None:
    symptoms = check_symptoms(facts_of(trace_of([kernel(0, 10)])))
    assert [s.code for s in symptoms] == CODES
    assert not any(s.present for s in symptoms)


def test_an_operation_of_no_length_divides_by_nothing() -> None:
    symptoms = check_symptoms(
        facts_of(trace_of([kernel(5, 5, "ncclKernel_AllReduce"), kernel(5, 5, "ncclSendRecv")]))
    )
    assert not any(s.present for s in symptoms)


def over(value: float, threshold: float = 0.20) -> Condition:
    return Condition("share", value, threshold)


def under(value: float) -> Condition:
    return Condition("other", value, 0.50, under=True, write=lambda v: f"{v:.2f}")


def test_all_conditions_must_hold_and_one_may_miss_by_little() -> None:
    assert all_of("n", over(0.21), under(0.49)) == Seen(True, "n")
    assert all_of("n", over(0.20), under(0.49)) == Seen(False, "n", "share 20.0 % against 20.0 %")
    assert all_of("n", over(0.19), under(0.54)) == Seen(
        False, "n", "share 19.0 % against 20.0 %, other 0.54 against 0.50"
    )
    assert all_of("n", over(0.19), under(0.56)) == Seen(False, "n")
    assert all_of("n", over(0.17), under(0.49)) == Seen(False, "n")


def test_one_condition_is_enough_and_any_may_miss_by_little() -> None:
    assert any_of("n", over(0.21), under(0.54)) == Seen(True, "n")
    assert any_of("n", over(0.19), under(0.99)) == Seen(False, "n", "share 19.0 % against 20.0 %")
    assert any_of("n", over(0.0), under(0.99)) == Seen(False, "n")


def test_a_threshold_of_nothing_is_missed_by_any_distance() -> None:
    assert not over(-0.01, 0.0).near


def test_durations_are_written_in_the_unit_that_suits_them() -> None:
    texts = [time_text(ns) for ns in (0, 999, 1_000, 12_345, 999_700, 1_500_000, 2_000_000_000)]
    assert texts == ["0 ns", "999 ns", "1 µs", "12.3 µs", "1000 µs", "1.5 ms", "2 s"]


def test_counts_are_written_with_their_noun() -> None:
    assert [counted(1, "step"), counted(2, "step"), counted(3, "launch")] == [
        "1 step",
        "2 steps",
        "3 launches",
    ]
