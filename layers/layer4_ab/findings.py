"""What an A/B finds: the verdict on its variable, metrics beside it, what it does not show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Comparison, Stacks, Trace
from layers.layer4_ab.blocks import words
from layers.layer4_ab.guard_checks import floor_is_measured
from layers.layer4_ab.measurements import scope_of, suspect_scope
from layers.layer4_ab.model import AbAnalysis, Call, Count, Effect
from layers.layer4_ab.numbers import interval
from layers.layer4_ab.treatment import ran
from layers.layer4_ab.word import Word

LOOK_ELSEWHERE = "look for what else differs between the arms"
KEEP = {
    Word.IMPROVEMENT: "keep the change, once the gates that are not shown are passed",
    Word.REGRESSION: "leave the change out",
    Word.EQUIVALENT: "decide by something else: the difference does not matter",
    Word.INCONCLUSIVE: "claim nothing; run the pairs that it takes",
}


def findings_of(
    found: AbAnalysis, word: Word, guards: Sequence[Checked], measured: Sequence[Measurement], because: str
) -> list[Finding]:
    """The verdict first; none where the A/B is invalid."""
    if word is Word.INVALID or found.primary is None:
        return []
    concluded = word is not Word.INCONCLUSIVE
    facts = Comparison(found.primary.pairs, concluded and not _short_of_strong(found))
    judged = judge_strength(facts, guards, clear=concluded)
    if judged is None:
        return []
    made = [_verdict(found, word, judged, measured, because)]
    return [
        *made,
        *_beside(found, judged, measured),
        *_unblocked(found, judged, measured),
        *_suspects(found, measured),
        *_blocks(found),
    ]


def _short_of_strong(found: AbAnalysis) -> list[str]:
    """What a strong finding lacks beside pairs and an interval."""
    lacks = [] if floor_is_measured(found) else ["the A/A floor was not measured"]
    return lacks if ran(found.treatment) else [*lacks, "nothing shows that the path ran"]


def _verdict(
    found: AbAnalysis, word: Word, judged: Judgement, measured: Sequence[Measurement], because: str
) -> Finding:
    lacks = _short_of_strong(found)
    medium = judged.strength is Strength.MEDIUM and lacks
    return Finding(
        statement=f"{variable_text(found)}: {word}. {because}",
        strength=judged.strength,
        rule=f"{judged.rule}; {', '.join(lacks)}" if medium else judged.rule,
        recommendation=KEEP[word],
        negative=word in (Word.INCONCLUSIVE, Word.EQUIVALENT),
        measurements=_of(found.primary, measured),
        disproof="a fresh experiment of as many pairs that claims the opposite, or nothing",
        kind=FindingKind.VERDICT,
    )


def variable_text(found: AbAnalysis) -> str:
    """What was changed, in words: as declared, or the one fact that differs."""
    named = [one for one in found.differences if one.name == found.question.variable]
    told = named or (list(found.differences) if len(found.differences) == 1 else [])
    if told:
        return f"{told[0].name} {told[0].a} → {told[0].b}"
    return found.question.variable or "B against A"


def _of(effect: Effect | None, measured: Sequence[Measurement]) -> tuple[Measurement, ...]:
    return tuple(m for m in measured if effect is not None and m.scope == scope_of(effect))


def _beside(found: AbAnalysis, judged: Judgement, measured: Sequence[Measurement]) -> Iterator[Finding]:
    """Metrics beside the primary one that are claimed, after Holm."""
    for effect in (*found.others, *found.elsewhere):
        if not effect.claimed or effect.p_adjusted is None:
            continue
        family = len([one for one in (*found.others, *found.elsewhere) if one.p is not None])
        adjusted = f"p = {effect.p_adjusted:.3g} after Holm over {family} comparisons"
        said = f"{effect.metric.name} is {effect.call} at {effect.load}"
        yield Finding(
            statement=f"{said}: {interval(effect)}, {adjusted}",
            strength=Strength.WEAK if judged.directional else Strength.MEDIUM,
            rule=judged.rule if judged.directional else f"beside the primary metric: {adjusted}",
            recommendation="weigh it against the primary metric"
            if effect.call is Call.WORSE
            else "take it as a part of the same effect",
            measurements=_of(effect, measured),
        )


def _unblocked(found: AbAnalysis, judged: Judgement, measured: Sequence[Measurement]) -> Iterator[Finding]:
    """What the change let run that did not run before: the second cost of what was in its way."""
    for one in filter(_is_unblocked, found.unblocked):
        yield Finding(
            statement=f"the change unblocked {one.name}: from 0 to {one.b:,.10g} ({one.where})",
            strength=judged.strength,
            rule=judged.rule,
            recommendation="count its gain to what was unblocked, not to what was removed",
            measurements=_of(found.primary, measured),
            evidence=one.text,
        )


def _is_unblocked(one: Count) -> bool:
    return one.a == 0 and one.b > 0


def _suspects(found: AbAnalysis, measured: Sequence[Measurement]) -> Iterator[Finding]:
    """What became of each suspect's share: whether the gain is the one that was meant."""
    for one in found.leaf.shares if found.leaf else ():
        sides = one.before, one.after
        facts = Stacks(
            ticks=min(side.ticks for side in sides),
            captures=min(len(side.per_capture) for side in sides),
            agree=all(side.agrees is not False for side in sides),
        )
        judged = judge_strength(facts, clear=not one.unchanged)
        if judged is None:
            continue
        word = "not shown to have changed" if one.unchanged else "less" if one.high < 0 else "more"
        yield Finding(
            statement=f"share of the suspect, {word}: {one.text}",
            strength=judged.strength,
            rule=judged.rule,
            recommendation=LOOK_ELSEWHERE if one.unchanged else "count the change to this line",
            negative=one.unchanged,
            measurements=tuple(m for m in measured if m.scope == suspect_scope(one)),
        )


def _blocks(found: AbAnalysis) -> Iterator[Finding]:
    """What blocks in the steps of each arm, and what it prevents."""
    for one in found.blocks:
        judged = judge_strength(Trace(one.steps, one.operations, one.captures), clear=True)
        if judged is None:
            continue
        yield Finding(
            statement=f"what blocks inside a step: {words(one)}",
            strength=judged.strength,
            rule=judged.rule,
            recommendation="where the second gain is larger, take out what blocks, and A/B it (--unblocked)",
            evidence=f"idle time of the device by cause over {one.steps:,} steps",
            artifacts=one.artifacts,
        )
