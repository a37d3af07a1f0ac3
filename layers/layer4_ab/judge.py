"""From an analysed A/B to one word, its guards, measurements and findings.

    improvement, regression   claimed: beyond the interval and the floor
    equivalent                shown to lie inside the declared margin
    inconclusive              neither, with what this experiment would have seen and what it would take
    invalid                   a void guard: the ratio says nothing about the variable

Accuracy that was lost is a regression, however fast.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few
from layers.layer4_ab.findings import findings_of
from layers.layer4_ab.gates import ACCURACY
from layers.layer4_ab.guards_arms import ARM_GUARDS
from layers.layer4_ab.guards_evidence import EVIDENCE_GUARDS
from layers.layer4_ab.guards_pairs import PAIR_GUARDS
from layers.layer4_ab.measurements import ab_measurements
from layers.layer4_ab.model import AbAnalysis, Call, GateState
from layers.layer4_ab.next_steps import next_step
from layers.layer4_ab.numbers import interval, size
from layers.layer4_ab.sections import sections
from layers.layer4_ab.word import Word

COMMAND = "ab"
WORDS = {
    Call.BETTER: Word.IMPROVEMENT,
    Call.WORSE: Word.REGRESSION,
    Call.EQUIVALENT: Word.EQUIVALENT,
    Call.OPEN: Word.INCONCLUSIVE,
}
EXITS = {
    Word.IMPROVEMENT: Exit.OK,
    Word.REGRESSION: Exit.FAILED,
    Word.EQUIVALENT: Exit.OK,
    Word.INCONCLUSIVE: Exit.NO_CONCLUSION,
    Word.INVALID: Exit.INVALID,
}


def judge(found: AbAnalysis) -> Result:
    """The result of `perfkit ab`."""
    guards = apply_guards((*PAIR_GUARDS, *ARM_GUARDS, *EVIDENCE_GUARDS), found)
    word, measured = word_of(found, guards), ab_measurements(found)
    verdict = _verdict(found, word, guards)
    return Result(
        command=COMMAND,
        verdict=verdict,
        guards=guards,
        measurements=measured,
        findings=findings_of(found, word, guards, measured, verdict.because),
        sections=sections(found),
    )


def word_of(found: AbAnalysis, guards: Sequence[Checked]) -> Word:
    """The one word."""
    if found.primary is None or strongest_effect(guards) is Effect.VOID:
        return Word.INVALID
    if found.gates[ACCURACY].state is GateState.FAILED:
        return Word.REGRESSION
    return WORDS[found.primary.call]


def _verdict(found: AbAnalysis, word: Word, guards: Sequence[Checked]) -> Verdict:
    concluded = word in (Word.IMPROVEMENT, Word.REGRESSION, Word.EQUIVALENT)
    doubted = any(g.fired and g.effect is Effect.DIRECTIONAL for g in guards)
    directional = concluded and doubted
    code = exit_code_for(EXITS[word], guards, directional=directional)
    return Verdict(
        str(word), directional, _because(found, word, guards), code, next_step(found, word, guards)
    )


def _because(found: AbAnalysis, word: Word, guards: Sequence[Checked]) -> str:
    if word is Word.INVALID:
        void = [f"{g.title}: {g.message}" for g in guards if g.fired and g.effect is Effect.VOID]
        kept = sum(not one.excluded for one in found.rounds)
        runs = f"{kept} of {counted(len(found.rounds), 'run')} kept"
        return first_few(void) or f"no pair of starts in which both have the metric: {runs}"
    primary = found.primary
    assert primary is not None
    pairs = counted(primary.pairs, "pair")
    said = f"{primary.metric.name} {interval(primary)} at {found.load}, {pairs} of starts"
    if primary.floor is not None:
        said = f"{said}, A/A floor {size(primary.floor)}"
    accuracy = found.gates[ACCURACY]
    if accuracy.state is GateState.FAILED:
        return f"accuracy was lost ({accuracy.because}); {said}"
    return f"{said}{_of_the_word(found, word)}"


def _of_the_word(found: AbAnalysis, word: Word) -> str:
    primary = found.primary
    assert primary is not None
    if word is Word.EQUIVALENT and found.question.margin is not None:
        real = "; the difference is real, and inside the margin" if primary.clear_of_zero else ""
        return f": within {100 * found.question.margin:g} %{real}"
    if word is not Word.INCONCLUSIVE:
        return ""
    if primary.detectable is None:
        return ": nothing is known of their noise"
    inside = primary.clear_of_zero and primary.floor is not None and abs(primary.mean) <= primary.floor
    why = "inside the floor, so not claimed; " if inside else ""
    return f": {why}so many pairs see {size(primary.detectable)} in 4 of 5 cases"
