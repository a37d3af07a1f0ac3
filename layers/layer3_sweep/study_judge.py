"""From a study's numbers to its verdict, findings and part of the document.

    settings-differ    a ratio is clear of 1 with all comparisons of the study together
    level              every interval lies within LEVEL of 1: nothing here is worth choosing by
    undecided          neither: what it would have taken to tell is in the sentence
    void               no two cells are left to compare

The class of a curve is no part of it: a study has one load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked, Effect
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for, judge_strength
from layers.evidence.strength_table import SweepPoint as Facts
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import clipped, counted, first_few, limit
from layers.layer3_sweep import measurements as named
from layers.layer3_sweep.batch_laws import law_text, worth_a_grid
from layers.layer3_sweep.judge import why_void
from layers.layer3_sweep.measurements import curve_measurements
from layers.layer3_sweep.model import Curve, SweepAnalysis
from layers.layer3_sweep.points import counts_of, scope_of, scope_of_curve, within_budget
from layers.layer3_sweep.protocol import MIX
from layers.layer3_sweep.sections import batch_law, sections
from layers.layer3_sweep.studies import Study
from layers.layer3_sweep.study import LEVEL, Compared, Comparison, MixRows, Ratio, compared

DIFFER, LEVEL_WORD, UNDECIDED, VOID = "settings-differ", "level", "undecided", "void"


def judge_study(study: Study, analysis: SweepAnalysis, beside: Sequence[Checked] = ()) -> Result:
    """The result of `perfkit sweep --study`; `beside` are guards on the whole of it."""
    found = compared(analysis.curves, study.reference)
    guards = [*beside, *analysis.guards]
    measured = [m for curve in analysis.curves for m in curve_measurements(curve)]
    standing = _concerning(guards, analysis.curves)
    verdict = _verdict(found, analysis, guards, standing)
    findings = [] if verdict.word == VOID else list(_findings(found, analysis, standing, measured))
    return Result(
        command="sweep",
        verdict=verdict,
        guards=guards,
        measurements=measured,
        findings=findings,
        sections=sections(analysis, None) | {"study": clipped(study_section(study, found))},
    )


def _concerning(guards: Sequence[Checked], curves: Sequence[Curve]) -> list[Checked]:
    """Those that fired on cells and passes that stand, or on the whole; none that took a pass out."""
    scopes = {"", *map(scope_of_curve, curves)}
    scopes |= {scope_of(swept) for curve in curves for point in curve.points for swept in point.passes}
    return [g for g in guards if g.fired and g.effect is not Effect.VOID and g.scope in scopes]


def word_of(found: Compared) -> str:
    """What the ratios come to."""
    if not found.comparisons:
        return VOID
    if any(ratio.clear for ratio in found.ratios):
        return DIFFER
    return LEVEL_WORD if all(ratio.level for ratio in found.ratios) else UNDECIDED


def _verdict(
    found: Compared, analysis: SweepAnalysis, guards: Sequence[Checked], standing: Sequence[Checked]
) -> Verdict:
    word = word_of(found)
    if word == VOID:
        void = [g for g in guards if g.fired and g.effect is Effect.VOID]
        because = f"no two cells are left to compare: {why_void(void) or 'too few passes were run'}"
        step = f"perfkit explain {void[0].code}" if void else "perfkit sweep --resume"
        return Verdict(word, False, because, Exit.INVALID, step)
    directional = word != UNDECIDED and any(g.effect is Effect.DIRECTIONAL for g in standing)
    reached = Exit.NO_CONCLUSION if word == UNDECIDED else Exit.OK
    code = exit_code_for(reached, standing, directional=directional)
    return Verdict(word, directional, _because(found, word), code, _next_step(word))


def _because(found: Compared, word: str) -> str:
    of = f"{counted(len(found.ratios), 'ratio')} of {counted(len(found.comparisons), 'comparison')}"
    if word == LEVEL_WORD:
        return f"all of {of} lie within {limit(LEVEL)} of 1, intervals and all"
    told = found.detectable
    least = f"; throughputs {told:.2f}x apart would be told" if told is not None else "; no cell has repeats"
    if word == UNDECIDED:
        return f"none of {of} is clear of 1 with all taken together{least}"
    clear = [c for c in found.comparisons if c.throughput.clear or (c.tail and c.tail.clear)]
    said = first_few(map(comparison_text, sorted(clear, key=_size, reverse=True)))
    return f"{len(clear)} of {counted(len(found.comparisons), 'comparison')} differ: {said}"


def _size(one: Comparison) -> float:
    """How far the farther of its clear ratios is from 1."""
    clear = [r.value for r in (one.throughput, one.tail) if r is not None and r.clear]
    return max(max(value, 1 / value) for value in clear)


def _next_step(word: str) -> str:
    if word == UNDECIDED:
        return "more repeats, on a machine of its own (--repeats N; the interval shrinks with their root)"
    return "choose by the mix that arrives; then an A/B of that one setting, with a start of the server a run"


def comparison_text(one: Comparison) -> str:
    """`short-heavy, policy=unified against per-stage (max_running_requests=8): req/s 0.81x [0.77, 0.85]`."""
    rest = [f"{name}={value}" for name, value in one.settings.items() if name != one.setting]
    where = f" ({', '.join(rest)})" if rest else ""
    tail = f", tail {ratio_text(one.tail)}" if one.tail is not None else ""
    what = f"{one.mix}, {one.setting}={one.own} against {one.against}"
    return f"{what}{where}: req/s {ratio_text(one.throughput)}{tail}"


def ratio_text(ratio: Ratio) -> str:
    """`0.81x [0.77, 0.85]`, with an asterisk where it is clear of 1 with all comparisons together."""
    interval = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low and ratio.high else ""
    return f"{ratio.value:.2f}x{interval}{'*' * ratio.clear}"


def _findings(
    found: Compared, analysis: SweepAnalysis, standing: Sequence[Checked], measured: Sequence[Measurement]
) -> Iterator[Finding]:
    cells = [curve for curve in analysis.curves if within_budget(curve)]
    points = [within_budget(curve)[-1] for curve in cells]
    facts = Facts(
        repeats=min((len(point.passes) for point in points), default=0),
        requests=sum(counts_of(point).asked for point in points),
    )
    word = word_of(found)
    judged = judge_strength(facts, standing, clear=word != UNDECIDED)
    plain = judge_strength(facts, standing, clear=True)
    if judged is None or plain is None:
        return
    rates = tuple(m for m in measured if m.name == named.THROUGHPUT)
    yield Finding(
        statement=_because(found, word),
        strength=judged.strength,
        rule=judged.rule,
        recommendation=_next_step(word),
        negative=word == LEVEL_WORD,
        measurements=rates,
        kind=FindingKind.VERDICT,
    )
    for one in found.mixes:
        own = tuple(m for m in rates if f"{MIX}={one.mix}" in m.scope)
        for statement, advice in _of_mix(one):
            yield Finding(statement, plain.strength, plain.rule, advice, measurements=own)


def _of_mix(one: MixRows) -> Iterator[tuple[str, str]]:
    """What is seen in a mix, and what to do with it."""
    front = [cell for cell in one.cells if cell.on_front]
    both = f"throughput and {one.tail}" if one.tail else "throughput"
    of = f"{len(front)} of {counted(len(one.cells), 'cell')} are beaten by none in {both}"
    texts = first_few(cell.text(one.tail) for cell in front)
    yield f"{one.mix}: {of}: {texts}", "choose among these by the tail that is promised"
    for way, law in one.laws:
        if worth_a_grid(law):
            advice = f"a prediction: check it with --param over the batch of {law.stage}"
            yield f"{one.mix}, {way}, {law_text(law, _apart(one, way))}", advice


def _apart(one: MixRows, way: str) -> dict[str, str]:
    """Settings that all passes behind a law share."""
    settings = [pair for cell in one.cells for pair in cell.settings.items()]
    return {MIX: one.mix} | {name: value for name, value in settings if value == way}


def study_section(study: Study, found: Compared) -> dict[str, Any]:
    """`study` of the document: cells by mix with the front, comparisons, laws of batches, and what all of it
    does not say."""
    return {
        "name": study.name,
        "question": study.question,
        "reference": study.reference,
        "level": LEVEL,
        "freedom": found.freedom,
        "detectable": found.detectable,
        "mixes": [
            {
                "mix": one.mix,
                "data": study.mixes.get(one.mix, ""),
                "tail": one.tail,
                "cells": msgspec.to_builtins(one.cells),
                "batch_laws": [
                    {"way": way} | batch_law(law) | {"text": law_text(law, _apart(one, way))}
                    for way, law in one.laws
                ],
            }
            for one in found.mixes
        ],
        "comparisons": [
            msgspec.to_builtins(c) | {"own": c.own, "text": comparison_text(c)} for c in found.comparisons
        ],
        "cannot": list(study.cannot),
    }
