"""One result from traces and sampled series together: a verdict only where independent methods do not differ.

A trace says more, so its word stands where the samples do not contradict it. A trace that is void (blind to
graph replays, say) leaves the word to the samples. Opposite words, or different readings of one time, are
undecided and explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layers.evidence.finding import Finding, Strength
from layers.evidence.guard import Checked, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import pct
from layers.layer1_gpu_busy.cross_check import Comparison, Times, cross_check, with_cards
from layers.layer1_gpu_busy.doubt_steps import without_doubt
from layers.layer1_gpu_busy.guards import BUSY_OVER_READING
from layers.layer1_gpu_busy.guards_cross import CROSS_GUARDS, METHODS_DISAGREE, CrossFacts, said
from layers.layer1_gpu_busy.judge import TraceDevice, judge_traces
from layers.layer1_gpu_busy.methods import Instrument, Method, Question, all_methods
from layers.layer1_gpu_busy.sampled_judge import (
    JudgedCard,
    findings_of_samples,
    judge_samples,
    sampled_measurements,
    verdict_of_samples,
)
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from layers.layer1_gpu_busy.sampled_sections import (
    comparisons_section,
    device_rows,
    methods_section,
    samples_section,
)
from layers.layer1_gpu_busy.sampled_word import FILL_NEXT, SM_INEFFECTIVE
from layers.layer1_gpu_busy.sections import sections
from layers.layer1_gpu_busy.sm_active import SmActive
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread

OPPOSITE = {Word.HOST_BOUND, Word.DEVICE_BOUND}
NEXT = f"find out which method is blind before acting on either: perfkit explain {METHODS_DISAGREE.code}"


@dataclass(frozen=True, slots=True)
class CrossChecked:
    """A result with what its methods are and how they compare."""

    result: Result
    cards: tuple[JudgedCard, ...]
    methods: tuple[Method, ...]
    comparisons: tuple[Comparison, ...]


def judge_with_samples(
    traces: Sequence[TraceAnalysis],
    files: Sequence[SampledAnalysis],
    thresholds: Thresholds,
    unread: Sequence[Unread] = (),
) -> CrossChecked:
    """The result of `perfkit layer1` with sampled series, with traces or without."""
    cards = judge_samples(files, thresholds)
    methods = with_cards(all_methods(traces, cards))
    comparisons = cross_check(methods)
    of_samples = _result_of_samples(cards, thresholds)
    facts = CrossFacts(comparisons)
    result = of_samples
    if traces:
        of_traces = judge_traces(
            traces, thresholds, unread, _supported(comparisons), _sampled_sm(comparisons)
        )
        facts = CrossFacts(comparisons, _void_devices(of_traces))
        result = _combined(of_traces, of_samples, facts)
    elif facts.against:
        result = _undecided(of_samples, said(facts.against[0]))
    crossed = apply_guards(CROSS_GUARDS, facts)
    result = replace(
        result,
        guards=[*_without_pointless(result.guards, methods), *crossed],
        sections={
            **result.sections,
            "samples": samples_section(files, cards),
            "methods": methods_section(methods),
            "comparisons": comparisons_section(comparisons),
        },
    )
    return CrossChecked(result, tuple(cards), tuple(methods), tuple(comparisons))


def _void_devices(of_traces: Result) -> set[TraceDevice]:
    rows = of_traces.sections["devices"]
    return {(row["source"], row["device"]) for row in rows if row["word"] == Word.VOID}


def _supported(comparisons: Sequence[Comparison]) -> set[TraceDevice]:
    """The devices of traces that a sampler confirms, and none contradicts."""
    confirmed = {(c.a.source, c.a.device) for c in comparisons if c.supports}
    return confirmed - {(c.a.source, c.a.device) for c in comparisons if c.agree is False}


def _sampled_sm(comparisons: Sequence[Comparison]) -> dict[TraceDevice, SmActive]:
    """How full a sampler saw the device of each trace."""
    return {
        (c.a.source, c.a.device): SmActive(c.b.value, c.b.n, c.b.method)
        for c in comparisons
        if c.a.instrument is Instrument.RECORDS and _of_sms(c)
    }


def _of_sms(c: Comparison) -> bool:
    return c.b.question is Question.SM_ACTIVE and c.times in (Times.SAME, Times.UNKNOWN)


def _result_of_samples(cards: Sequence[JudgedCard], thresholds: Thresholds) -> Result:
    return Result(
        command="layer1",
        verdict=verdict_of_samples(cards),
        guards=[checked for card in cards for checked in card.guards],
        measurements=[m for card in cards for m in sampled_measurements(card)],
        findings=findings_of_samples(cards),
        sections={**sections((), (), (), thresholds, ()), "devices": device_rows(cards)},
    )


def _combined(of_traces: Result, of_samples: Result, facts: CrossFacts) -> Result:
    both = replace(
        of_traces,
        guards=[*of_traces.guards, *of_samples.guards],
        measurements=[*of_traces.measurements, *of_samples.measurements],
        findings=[*of_traces.findings, *of_samples.findings],
        sections={
            **of_traces.sections,
            "devices": [*of_traces.sections["devices"], *of_samples.sections["devices"]],
        },
    )
    traced, sampled = of_traces.verdict, of_samples.verdict
    if traced.word == Word.VOID:
        return replace(both, verdict=_samples_alone(sampled, traced))
    if facts.against:
        return _undecided(both, said(facts.against[0]))
    if {traced.word, sampled.word} == OPPOSITE:
        return _undecided(both, f"the trace says {traced.word}, the samples {sampled.word}, of other times")
    return replace(both, verdict=_with_samples(of_traces, sampled, facts.comparisons))


def _samples_alone(sampled: Verdict, traced: Verdict) -> Verdict:
    return replace(sampled, because=f"{sampled.because}; the trace is void: {traced.because}")


def _with_samples(of_traces: Result, sampled: Verdict, comparisons: Sequence[Comparison]) -> Verdict:
    """A trace's verdict with what the samples add to its sentence, and to where it leads."""
    traced = of_traces.verdict
    empty = next((c.b for c in comparisons if _leaves_sms_idle(c)), None)
    if traced.word != Word.DEVICE_BOUND or empty is None:
        return replace(traced, because=traced.because + _beside(sampled, comparisons))
    because = f"{traced.because}{_beside(sampled, comparisons)}; SM active only {pct(empty.value)}"
    doubts = of_traces.guards if traced.directional else []
    return replace(traced, because=because, next_step=without_doubt(doubts, FILL_NEXT, doubts))


def _leaves_sms_idle(c: Comparison) -> bool:
    return _of_sms(c) and c.b.value < SM_INEFFECTIVE


def _beside(sampled: Verdict, comparisons: Sequence[Comparison]) -> str:
    agreeing = next((c for c in comparisons if c.agree and c.times is Times.SAME), None)
    if agreeing is not None:
        agrees = "agrees" if not agreeing.assumed else "agrees, if it is of the same card"
        return f"; {agreeing.b.measures} {agrees} ({pct(agreeing.b.value)}, n = {agreeing.b.n:,})"
    if sampled.word == Word.VOID:
        return f"; the samples are void: {sampled.because}"
    return f"; the samples, of other times or unknown ones, say {sampled.word}"


def _undecided(result: Result, because: str) -> Result:
    """No word where methods differ, and findings that only hint."""
    verdict = Verdict(Word.UNDECIDED, False, because, Exit.NO_CONCLUSION, NEXT)
    return replace(result, verdict=verdict, findings=[_weakened(f) for f in result.findings])


def _weakened(finding: Finding) -> Finding:
    return replace(finding, strength=Strength.WEAK, rule=f"directional: {METHODS_DISAGREE.title}")


def _without_pointless(guards: Sequence[Checked], methods: Sequence[Method]) -> list[Checked]:
    """Without the guard that says that SM active was not measured, where it was."""
    with_sm = any(m.question is Question.SM_ACTIVE for m in methods)
    return [checked for checked in guards if not (with_sm and checked.code == BUSY_OVER_READING.code)]
