"""From a comparison of outputs to one verdict, its guards, measurements and findings."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import first_few
from layers.layer5_regression.findings import NEXT, because, findings_of
from layers.layer5_regression.guards import OUTPUT_GUARDS
from layers.layer5_regression.guards_collected import COLLECTED_GUARDS
from layers.layer5_regression.measurements import measurements_of
from layers.layer5_regression.model import Analysis
from layers.layer5_regression.sections import sections
from layers.layer5_regression.thresholds import Word, word_of

COMMAND = "regress"
REACHED = {Word.IDENTICAL: Exit.OK, Word.EQUIVALENT: Exit.OK, Word.DIFFERENT: Exit.FAILED}
MEND = "mend what the checks name, and compare again"


def judge(analysis: Analysis) -> Result:
    """The result of `perfkit regress`."""
    guards = apply_guards((*OUTPUT_GUARDS, *COLLECTED_GUARDS), analysis)
    measured = list(measurements_of(analysis))
    return Result(
        command=COMMAND,
        verdict=verdict_of(analysis, guards),
        guards=guards,
        measurements=measured,
        findings=list(findings_of(analysis, guards, measured)),
        sections=sections(analysis),
    )


def verdict_of(analysis: Analysis, guards: Sequence[Checked]) -> Verdict:
    """A void guard makes the comparison invalid, whatever it found."""
    effect = strongest_effect(guards)
    if effect is Effect.VOID:
        void = [f"{g.message} ({g.title})" for g in guards if g.fired and g.effect is Effect.VOID]
        return Verdict(Word.INVALID, False, first_few(void), Exit.INVALID, MEND)
    word, directional = word_of(analysis), effect is Effect.DIRECTIONAL
    code = exit_code_for(REACHED[word], guards, directional=directional)
    return Verdict(word, directional, because(analysis), code, NEXT[word])
