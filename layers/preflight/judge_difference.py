"""From two snapshots to one verdict: may these two runs be compared?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from layers.evidence.guard import Effect, Guard, Outcome, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from layers.preflight.compare import Difference, compare, flat
from layers.preflight.judge import COMMAND
from layers.preflight.snapshot import Snapshot

SAME, DECLARED, DIFFERENT = "same", "declared-only", "different"
SHOWN = 3


def undeclared(differences: Sequence[Difference]) -> list[Difference]:
    """Those that nobody meant."""
    return [one for one in differences if not one.declared]


def _check(differences: Sequence[Difference]) -> Outcome:
    names = [one.name for one in undeclared(differences)]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return Outcome(bool(names), ", ".join(names[:SHOWN]) + more if names else "nothing undeclared differs")


DIFFERENCE_GUARDS: tuple[Guard[Sequence[Difference]], ...] = (
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
)


def judge_difference(before: Snapshot, after: Snapshot, declared: Sequence[str] = ()) -> Result:
    """The result of `perfkit preflight --diff`: exit 1 where something differs that was not declared."""
    differences = compare(before, after, declared)
    guards = apply_guards(DIFFERENCE_GUARDS, differences)
    return Result(
        command=COMMAND,
        verdict=_verdict(differences, len(flat(before))),
        guards=guards,
        sections={
            "before": before.taken,
            "after": after.taken,
            "differences": [asdict(one) for one in differences],
        },
    )


def _verdict(differences: Sequence[Difference], facts: int) -> Verdict:
    unmeant = undeclared(differences)
    if unmeant:
        because = f"{counted(len(unmeant), 'undeclared difference')}: {_check(differences).message}"
        return Verdict(DIFFERENT, False, because, Exit.FAILED, "perfkit explain PK020")
    if differences:
        return Verdict(DECLARED, False, f"only what was declared differs: {differences[0].name}", Exit.OK)
    return Verdict(SAME, False, f"{counted(facts, 'fact')}, none different", Exit.OK)
