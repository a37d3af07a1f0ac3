"""An A/B as the story of a fix: symptom, hypothesis, tool, evidence, change, effect, cost. Pure.

One place for all: a single `perfkit ab` and every step of a study are told alike, from what was recorded. A
part that nobody recorded says so, with what would tell it; nothing is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few, pct
from layers.layer4_ab.blocks import words
from layers.layer4_ab.findings import variable_text
from layers.layer4_ab.model import AbAnalysis, Call, LeafShare
from layers.layer4_ab.numbers import interval
from layers.layer4_ab.word import Word

NO_SYMPTOM = "none is recorded here: perfkit layer1, stages and layer2 into the same investigation tell one"
NO_HYPOTHESIS = "none was written down beside the variable"
NO_PROOF = "nothing shows that the switched path ran (--ran)"
SYMPTOMS = ("layer2", "stages", "layer1", "sweep")
"""Commands whose latest result says what was wrong, the most direct one first."""


@dataclass(frozen=True, slots=True)
class Story:
    """Seven parts, each a sentence or more."""

    symptom: str
    hypothesis: str
    tool: str
    evidence: str
    change: str
    effect: str
    cost: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the A/B itself: `tools` that recorded `evidence`, and what the change takes."""

    symptom: str = ""
    hypothesis: str = ""
    tools: Sequence[str] = ()
    evidence: Sequence[str] = ()
    costs: Sequence[str] = ()


def story_of(found: AbAnalysis, verdict: Verdict, known: Known) -> Story:
    """The story of one A/B."""
    pairs = counted(len(found.pairs), "pair")
    own = f"perfkit ab: {pairs} of server starts at {found.load}"
    return Story(
        symptom=known.symptom or NO_SYMPTOM,
        hypothesis=known.hypothesis or NO_HYPOTHESIS,
        tool="; ".join([own, *_tools(found), *known.tools]),
        evidence="; ".join([*_counted(found), *_seen(found), *known.evidence]),
        change=variable_text(found),
        effect=effect_text(found, verdict),
        cost="; ".join([*known.costs, *_worse(found)]),
    )


def section_of(story: Story) -> dict[str, str]:
    """JSON-ready, in the order of telling."""
    return asdict(story)


def effect_text(found: AbAnalysis, verdict: Verdict) -> str:
    """In plain words; one that is not shown is not called none."""
    primary, doubt = found.primary, "?" if verdict.directional else ""
    if primary is None or verdict.exit_code is Exit.INVALID:
        return f"not known: {verdict.because}"
    told = f"{primary.metric.name} {interval(primary)}"
    if verdict.word == Word.EQUIVALENT:
        margin = 100 * (found.question.margin or 0.0)
        return f"does nothing that matters here{doubt}: {told}, shown to lie within ±{margin:g} %"
    if verdict.word == Word.INCONCLUSIVE:
        because = verdict.because if told in verdict.because else f"{told}; {verdict.because}"
        return f"none was shown, which is not the same as none: {because}"
    helps = "helps" if verdict.word == Word.IMPROVEMENT else "makes it worse"
    return f"{helps}{doubt}: {told}"


def earlier_symptom(documents: Sequence[Mapping[str, Any]]) -> str:
    """What the latest sound result of a layer in this investigation says is wrong; empty without one."""
    sound = [one for one in documents if one["verdict"]["exit_code"] != Exit.INVALID]
    for command in SYMPTOMS:
        latest = next((one for one in reversed(sound) if one["command"] == command), None)
        if latest is not None:
            verdict = latest["verdict"]
            doubt = "?" if verdict["directional"] else ""
            return f"perfkit {command}, earlier here: {verdict['word']}{doubt}: {verdict['because']}"
    return ""


def _counted(found: AbAnalysis) -> list[str]:
    """Whether the path ran, and what it let run."""
    ran = [f"ran: {one.text}" for one in found.treatment] or [NO_PROOF]
    return [*ran, *(f"unblocked: {one.text}" for one in found.unblocked if one.a == 0 and one.b > 0)]


def _tools(found: AbAnalysis) -> list[str]:
    """What recorded the evidence beside the runs."""
    told = {"perfkit stages": found.stage is not None, "perfkit layer2": bool(_shares(found))}
    return [name for name, there in (told | {"traces of both arms": bool(found.blocks)}).items() if there]


def _seen(found: AbAnalysis) -> list[str]:
    """The stage's share, the suspect's share before and after, what blocks in a step."""
    stage = found.stage
    share = (
        [] if stage is None or stage.share is None else [f"{stage.stage}: {pct(stage.share)} of a request"]
    )
    leaves = [f"share of the suspect: {one.text}" for one in _shares(found)]
    return [*share, *leaves, *(f"blocks: {words(one)}" for one in found.blocks)]


def _shares(found: AbAnalysis) -> tuple[LeafShare, ...]:
    return found.leaf.shares if found.leaf is not None else ()


def _worse(found: AbAnalysis) -> list[str]:
    """Metrics beside the primary one that are claimed to be worse."""
    beside = (*found.others, *found.elsewhere)
    worse = [e for e in beside if e.claimed and e.call is Call.WORSE]
    if worse:
        return [first_few(f"{e.metric.name} {interval(e)} at {e.load}" for e in worse)]
    if not beside:
        return ["not known: no metric beside it was compared"]
    return [f"none of {counted(len(beside), 'metric')} beside it was shown to be worse"]
