"""From two snapshots to one verdict: may these two runs be compared?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from layers.evidence.guard import Effect, Guard, Outcome, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few
from layers.preflight.compare import Difference, compare, flat, without_effect
from layers.preflight.judge import COMMAND
from layers.preflight.snapshot import Snapshot

SAME, DECLARED, DIFFERENT = "same", "declared-only", "different"
SHOWN = 3


def undeclared(differences: Sequence[Difference]) -> list[Difference]:
    """Those that nobody meant."""
    return [one for one in differences if not one.declared]


@dataclass(frozen=True, slots=True)
class DifferenceFacts:
    """What differs; `without_effect`: what was declared and does not, each with why."""

    differences: Sequence[Difference]
    without_effect: Sequence[str]


def _check(facts: DifferenceFacts) -> Outcome:
    names = [one.name for one in undeclared(facts.differences)]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return Outcome(bool(names), ", ".join(names[:SHOWN]) + more if names else "nothing undeclared differs")


def _check_declared(facts: DifferenceFacts) -> Outcome:
    said = first_few(facts.without_effect)
    return Outcome(bool(said), said or "all that was declared differs")


DIFFERENCE_GUARDS: tuple[Guard[DifferenceFacts], ...] = (
    Guard(
        code="PK020",
        name="undeclared-difference",
        layer="preflight",
        effect=Effect.VOID,
        sees="Two runs whose numbers differ, with one change that everybody knows of.",
        cause="Something else changed as well: a package, a clock, a setting that the server resolved anew.",
        detection="Every fact of the two snapshots that is not the same and was not declared.",
        remedy="Undo it and run again, or declare it (--declared NAME) and say what it may have done.",
        source="psf/pyperf issue 162 and PR 221: comparisons that ignore metadata; one variable a pair.",
        check=_check,
    ),
    Guard(
        code="PK026",
        name="declared-without-effect",
        layer="preflight",
        effect=Effect.NOTE,
        sees="Two runs that are said to differ in one variable, and differ in none.",
        cause="The name that was declared is misspelt, or the setting never reached the second run.",
        detection="A name or pattern of --declared that no differing fact matches.",
        remedy="perfkit preflight --json lists the names of all facts; check that the switch was really set.",
        source="perfkit: a comparison of a run with itself shows an effect in one of twenty.",
        check=_check_declared,
    ),
)


def judge_difference(before: Snapshot, after: Snapshot, declared: Sequence[str] = ()) -> Result:
    """The result of `perfkit preflight --diff`: exit 1 where something differs that was not declared."""
    differences = compare(before, after, declared)
    names = flat(before).keys() | flat(after).keys()
    facts = DifferenceFacts(differences, without_effect(names, differences, declared))
    guards = apply_guards(DIFFERENCE_GUARDS, facts)
    return Result(
        command=COMMAND,
        verdict=_verdict(facts, len(flat(before))),
        guards=guards,
        sections={
            "before": before.taken,
            "after": after.taken,
            "differences": [asdict(one) for one in differences],
        },
    )


def _verdict(facts: DifferenceFacts, known: int) -> Verdict:
    differences = facts.differences
    unmeant = undeclared(differences)
    if unmeant:
        because = f"{counted(len(unmeant), 'undeclared difference')}: {_check(facts).message}"
        return Verdict(DIFFERENT, False, because, Exit.FAILED, "perfkit explain PK020")
    if differences:
        return Verdict(DECLARED, False, f"only what was declared differs: {differences[0].name}", Exit.OK)
    return Verdict(SAME, False, f"{counted(known, 'fact')}, none different", Exit.OK)
