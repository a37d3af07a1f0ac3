"""The catalogue as a whole: every entry is complete, and every trace gets an answer from each."""

from layers.evidence.wording import counted, time_text
from layers.layer1_gpu_busy.symptoms import CATALOGUE, check_symptoms
from tests.builders import kernel, trace_of
from tests.symptom_builders import facts_of

CODES = ["S1", "S1b", "S2", "S3", "S3b", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12"]


def test_the_catalogue_holds_each_code_once_in_order() -> None:
    assert [rule.code for rule in CATALOGUE] == CODES


def test_every_entry_says_what_it_means_and_what_would_disprove_it() -> None:
    for rule in CATALOGUE:
        texts = (rule.title, rule.threshold, rule.usual_cause, rule.look_next, rule.disproof)
        assert all(text and not text.endswith(" ") for text in texts), rule.code
        assert any(mark in rule.threshold_source for mark in ("(T)", "(H)", "(D)")), rule.code


def test_a_trace_of_one_kernel_gets_an_answer_from_each_entry() -> None:
    symptoms = check_symptoms(facts_of(trace_of([kernel(0, 10)])))
    assert [s.code for s in symptoms] == CODES
    assert not any(s.present for s in symptoms)


def test_an_operation_of_no_length_divides_by_nothing() -> None:
    symptoms = check_symptoms(
        facts_of(trace_of([kernel(5, 5, "ncclKernel_AllReduce"), kernel(5, 5, "ncclSendRecv")]))
    )
    assert not any(s.present for s in symptoms)


def test_durations_are_written_in_the_unit_that_suits_them() -> None:
    texts = [time_text(ns) for ns in (0, 999, 1_000, 12_345, 999_700, 1_500_000, 2_000_000_000)]
    assert texts == ["0 ns", "999 ns", "1 µs", "12.3 µs", "1000 µs", "1.5 ms", "2 s"]


def test_counts_are_written_with_their_noun() -> None:
    assert [counted(1, "step"), counted(2, "step"), counted(3, "launch")] == [
        "1 step",
        "2 steps",
        "3 launches",
    ]
