"""From the properties of keys to one verdict: the second layer of a change that alters keys and no outputs.

A hash may be replaced by another one: its keys differ, and that is no fault. So outputs are compared by their
bytes, and keys by what they must hold. Whether the comparison can fail is tried on the very keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked, Effect, Guard, Outcome, apply_guards, strongest_effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.strength import judge_strength
from layers.evidence.strength_table import Outputs
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few
from layers.layer5_regression.guards import LAYER
from layers.layer5_regression.key_checks import COLLISIONS, DETERMINISTIC, Property, broken
from layers.layer5_regression.key_rows import EXPECTED_COLLISIONS, KeySpec
from layers.layer5_regression.thresholds import Word

COMMAND = "regress"
LEAST_EXPECTED = 20.0
"""Collisions: with fewer a function that has twice as many is mostly within the interval (Poisson)."""
METHOD = "keys of made-up rows, asked of two processes"
NEXT = {
    Word.EQUIVALENT: "compare outputs by their bytes as well (--set, --vs, or --a, --b): the other layer",
    Word.DIFFERENT: "do not use this key: a cache that goes by it confuses requests",
}


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What was asked, what was found, and which planted faults were caught. `artifact`: rows and keys, where
    they are kept."""

    command: str
    spec: KeySpec
    rows: int
    expected_collisions: float
    properties: tuple[Property, ...]
    planted: tuple[tuple[str, bool], ...]
    artifact: Artifact | None = None


def _missed(facts: KeyFacts) -> Outcome:
    missed = [planted for planted, caught in facts.planted if not caught]
    said = f"{len(facts.planted) - len(missed)} of {counted(len(facts.planted), 'planted fault')} caught"
    said += f"; not {first_few(missed)}" if missed else ""
    return Outcome(bool(missed) or not facts.planted, said)


def _few(facts: KeyFacts) -> Outcome:
    expected = facts.expected_collisions
    said = f"{expected:.3g} collisions to be expected of the random rows, of {EXPECTED_COLLISIONS:g} aimed at"
    return Outcome(expected < LEAST_EXPECTED, said)


KEY_CONTROL = Guard(
    code="PK580",
    name="key-control-missed",
    layer=LAYER,
    effect=Effect.VOID,
    sees="All properties hold.",
    cause="A check that cannot fail.",
    detection="Faults planted into the very keys (one key changed, one out of range, a reserved id lost, "
    "order ignored, a quarter of the keys used), of which one broke no property.",
    remedy="Where a range is so small, or so large, that collisions show nothing, say so beside the result.",
    source="As PK553, for keys.",
    check=_missed,
)

FEW_COLLISIONS = Guard(
    code="PK581",
    name="few-collisions-expected",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="No collision.",
    cause="So few are to be expected among the rows that were asked that none says nothing of the next.",
    detection=f"n²/2M of the random rows is below {LEAST_EXPECTED:g}: a range of more than 2^28 keys.",
    remedy="Nothing, where the range is meant to be that large: the other properties hold for it.",
    source="The birthday bound; the rows are at most 200,000.",
    check=_few,
)

KEY_GUARDS: tuple[Guard[KeyFacts], ...] = (KEY_CONTROL, FEW_COLLISIONS)


def judge_keys(facts: KeyFacts) -> Result:
    """The result of `perfkit regress --key-layer`."""
    guards = apply_guards(KEY_GUARDS, facts)
    void = strongest_effect(guards) is Effect.VOID
    measured = [_measurement(one, facts.artifact) for one in facts.properties]
    verdict = _verdict(facts, void)
    return Result(
        command=COMMAND,
        verdict=verdict,
        guards=guards,
        measurements=measured,
        findings=list(_findings(facts, verdict, guards, measured)),
        sections={"samples": [], "first_divergence": None, "key_layer": _section(facts)},
    )


def _verdict(facts: KeyFacts, void: bool) -> Verdict:
    if void:
        return Verdict(Word.INVALID, False, _missed(facts).message, Exit.INVALID, "see the check below")
    failed = broken(facts.properties)
    word = Word.DIFFERENT if failed else Word.EQUIVALENT
    told = [f"{one.name}: {one.seen}" for one in failed]
    held = f"all {len(facts.properties)} properties of keys hold"
    collisions = next(one.seen for one in facts.properties if one.name == COLLISIONS)
    because = first_few(told) if failed else f"{held} over {counted(facts.rows, 'row')}; {collisions}"
    return Verdict(word, False, because, Exit.FAILED if failed else Exit.OK, NEXT[word])


def _measurement(one: Property, artifact: Artifact | None) -> Measurement:
    how = f"{METHOD}: {one.seen}"
    return Measurement(one.name, float(one.holds), "1 where it holds", one.n, "rows", how, artifact)


def _findings(
    facts: KeyFacts, verdict: Verdict, guards: Sequence[Checked], measured: Sequence[Measurement]
) -> Iterator[Finding]:
    """The verdict; its samples are rows, which the function was asked for twice."""
    failed = {one.name for one in broken(facts.properties)}
    repeats = 0 if DETERMINISTIC in failed else facts.rows
    caught = all(caught for _, caught in facts.planted)
    judged = judge_strength(
        Outputs(facts.rows, facts.rows, repeats, caught, bool(failed)), guards, clear=True
    )
    if judged is not None:
        kind, numbers = FindingKind.VERDICT, tuple(measured)
        said, advice = verdict.because, verdict.next_step
        yield Finding(said, judged.strength, judged.rule, advice, measurements=numbers, kind=kind)


def _section(facts: KeyFacts) -> dict[str, Any]:
    return {
        "command": facts.command,
        "spec": msgspec.to_builtins(facts.spec),
        "rows": facts.rows,
        "properties": [msgspec.to_builtins(one) for one in facts.properties],
        "control": [{"planted": planted, "caught": caught} for planted, caught in facts.planted],
    }
