"""From what a study found to one result: the word of the whole, a finding for each step, and the section.

The word is that of everything on against everything off, by the rule of every A/B; a step whose answers
differ makes it a regression, however fast. Each step has a word of its own, in the section and its finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import first_few
from layers.layer4_ab.judge import COMMAND
from layers.layer4_ab.sections import sections
from layers.layer4_ab.story import effect_text
from layers.layer4_ab.study.analyse import Found, StepFound
from layers.layer4_ab.study.sections import study_section
from layers.layer4_ab.study.steps import Way
from layers.layer4_ab.word import Word
from layers.layer5_regression.thresholds import Word as AnswerWord
from parsers.errors import UnreadableInput

NOTHING = "no round of both everything off and everything on stands: --resume goes on"
GO_ON = "perfkit ab --study {} --resume"


def judge_study(found: Found, left: Sequence[str] = (), why: str = "") -> Result:
    """The result of `perfkit ab --study`; `left` are jobs that were not done, and `why`. UnreadableInput
    where not even the whole can be told."""
    whole = found.whole
    if whole.result is None or whole.analysis is None:
        raise UnreadableInput(f"study {found.study.name}: {NOTHING}{f' ({why})' if why else ''}")
    verdict = _verdict(found, left)
    steps = [one for one in found.steps if one is not whole and one.result is not None]
    return Result(
        command=COMMAND,
        verdict=verdict,
        guards=[*whole.result.guards, *(g for one in steps for g in _fired(one))],
        measurements=[*whole.result.measurements, *(m for one in steps for m in _measured(one))],
        findings=[*_of_whole(whole, verdict), *(f for one in steps for f in _findings(one))],
        sections=sections(whole.analysis) | {"study": study_section(found, left, why)},
    )


def _verdict(found: Found, left: Sequence[str]) -> Verdict:
    whole = found.whole.result
    assert whole is not None
    step = GO_ON.format(found.study.name) if left else whole.verdict.next_step
    because = f"everything on over everything off: {whole.verdict.because}; {_switches(found)}"
    different = [one for one in found.steps if one.answers.word == AnswerWord.DIFFERENT]
    if different:
        names = first_few(one.step.name for one in different)
        return Verdict(
            str(Word.REGRESSION),
            False,
            f"answers differ: {names}; {because}",
            Exit.FAILED,
            "perfkit regress on that switch alone: what differs, and since when",
        )
    partial = bool(left) and whole.verdict.exit_code is Exit.OK
    code = Exit.NO_CONCLUSION if partial else whole.verdict.exit_code
    return replace(whole.verdict, because=because, exit_code=code, next_step=step)


def _switches(found: Found) -> str:
    """`left out, radix_key, cuda_graph help; nothing shown of …`, by the words of the steps."""
    by_word: dict[str, list[str]] = {}
    for switch in found.study.switches:
        step = found.of(switch.name, Way.LEFT_OUT, Way.BOTH)
        word = _word(step) if step is not None else "not run"
        by_word.setdefault(word, []).append(switch.name)
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in by_word.items())
    return f"each against itself left out: {told}"


def _word(step: StepFound) -> str:
    if step.result is None:
        return "not run"
    return f"{step.result.verdict.word}{'?' * step.result.verdict.directional}"


def _fired(step: StepFound) -> Iterator[Checked]:
    """Guards that fired on a step, with its name."""
    assert step.result is not None
    yield from (replace(g, scope=step.step.name) for g in step.result.guards if g.fired)


def _measured(step: StepFound) -> Iterator[Measurement]:
    assert step.result is not None
    yield from (replace(m, scope=f"{step.step.name}: {m.scope}") for m in step.result.measurements)


def _of_whole(whole: StepFound, verdict: Verdict) -> Iterator[Finding]:
    """The verdict's finding says what the study's verdict does."""
    assert whole.result is not None
    for one in whole.result.findings:
        is_verdict = one.kind is FindingKind.VERDICT
        yield replace(one, statement=f"{verdict.word}: {verdict.because}") if is_verdict else one


def _findings(step: StepFound) -> Iterator[Finding]:
    """The verdict of a step in plain words, and what it unblocked."""
    assert step.result is not None and step.analysis is not None
    for one in step.result.findings:
        if one.kind is FindingKind.VERDICT:
            told = f"{step.step.name}: {effect_text(step.analysis, step.result.verdict)}"
            yield replace(_named(one, step), statement=told, kind=FindingKind.OBSERVATION)
        elif "unblocked" in one.statement:
            yield replace(_named(one, step), statement=f"{step.step.name}: {one.statement}")


def _named(one: Finding, step: StepFound) -> Finding:
    own = tuple(replace(m, scope=f"{step.step.name}: {m.scope}") for m in one.measurements)
    return replace(one, measurements=own, scope=step.step.name)
