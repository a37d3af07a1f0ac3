"""What to do first where a result is in doubt: what removes the doubt, before any cure.

Recording again is one step, whatever it is for; of another check that leaves the result a hint it is what
its entry says to do. Checks whose remedy is the cure itself are left to `next_steps.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from layers.evidence.guard import Checked, Effect, Guard
from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.wording import first_clause
from layers.layer1_gpu_busy.guards import (
    BUSY_WITH_COPIES,
    BUSY_WITH_WAITING,
    DAMAGED_FILE,
    FEW_SAMPLES,
    IDLE_WHILE_QUEUED,
    RATIOS_ALONE,
    STACKS_SLOW_THE_HOST,
    TRACE_GUARDS,
)
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS, NOTHING_WAS_SUBMITTED, TORN_PAIRS
from layers.layer1_gpu_busy.guards_nsys import NSYS_GUARDS
from layers.layer1_gpu_busy.guards_run import RUN_GUARDS
from layers.layer1_gpu_busy.guards_torn import COPIES_WITHOUT_OPERATIONS, TORN_STRETCHES
from layers.layer1_gpu_busy.guards_width import BUSY_WITH_IDLE_SMS, WIDTH_GUARDS
from layers.layer1_gpu_busy.next_steps import NO_ANATOMY

RECORDED_SO = (
    (FEW_SAMPLES, f"{TRACE_MIN_STEPS} steady steps or more"),
    (STACKS_SLOW_THE_HOST, "without Python stacks"),
)
"""What a new recording must be like to be rid of each."""
ARE_THE_CURE = (
    *(IDLE_WHILE_QUEUED, NOTHING_WAS_SUBMITTED, BUSY_WITH_COPIES, BUSY_WITH_WAITING, BUSY_WITH_IDLE_SMS),
)
"""The next step says what their remedy says."""
TORN = [guard.code for guard in (DAMAGED_FILE, TORN_PAIRS, TORN_STRETCHES, COPIES_WITHOUT_OPERATIONS)]
"""Of a file that is not whole: it comes before whatever else it seems to say."""
DOUBTS_NAMED = 2
"""More than these are left to the list of checks."""

ALL_GUARDS: tuple[Guard[Any], ...] = (*TRACE_GUARDS, *DOUBT_GUARDS, *NSYS_GUARDS, *WIDTH_GUARDS, *RUN_GUARDS)
REMEDIES = {guard.code: first_clause(guard.remedy) for guard in ALL_GUARDS}


def without_doubt(guards: Sequence[Checked], cure: str, cured: Sequence[Checked]) -> str:
    """The cure, after what removes the doubts that these guards left. `cured`: those of them that are on the
    device that the cure is for."""
    first = [*_remedies(guards, _told(cured, cure)), *_record_again(guards)][:DOUBTS_NAMED]
    return f"first {'; '.join(first)}. Then {cure}" if first else cure


def _told(cured: Sequence[Checked], cure: str) -> set[str]:
    """The codes of the guards whose remedy is said anyway."""
    by_cure = [guard for guard in ARE_THE_CURE if guard.fired_in(cured)]
    alone = [RATIOS_ALONE] if NO_ANATOMY in cure else []
    return {guard.code for guard in (*(guard for guard, _ in RECORDED_SO), *by_cure, *alone)}


def _remedies(guards: Sequence[Checked], told: Collection[str]) -> Iterator[str]:
    by_remedy: dict[str, list[str]] = {}
    for code in dict.fromkeys(_doubts(guards)):
        if code not in told and code in REMEDIES:
            by_remedy.setdefault(REMEDIES[code], []).append(code)
    yield from (f"{remedy} ({', '.join(codes)})" for remedy, codes in by_remedy.items())


def _doubts(guards: Sequence[Checked]) -> Iterator[str]:
    """The codes of what weakened each thing that was guarded, or voids it; where it is not whole, of that."""
    by_scope: dict[str, list[str]] = {}
    for one in guards:
        if one.fired and one.effect is not Effect.NOTE:
            by_scope.setdefault(one.scope, []).append(one.code)
    for codes in by_scope.values():
        yield from [code for code in codes if code in TORN] or codes


def _record_again(guards: Sequence[Checked]) -> Iterator[str]:
    wanted = [(so, guard.code) for guard, so in RECORDED_SO if guard.fired_in(guards)]
    if wanted:
        how, codes = (", ".join(part) for part in zip(*wanted, strict=True))
        yield f"record again: {how} ({codes})"


def void_step(voided: Sequence[Checked]) -> str:
    """What would make a void result valid."""
    codes = list(dict.fromkeys(c.code for c in voided))[:DOUBTS_NAMED]
    remedies = dict.fromkeys(REMEDIES[code] for code in codes if code in REMEDIES)
    explain = f"perfkit explain {' '.join(codes)}"
    return f"{'; '.join(remedies)} ({explain})" if remedies else explain
