"""What to do first where a result is in doubt: what removes the doubt, before any cure.

Recording again is one step, whatever it is for; of another check that leaves the result a hint it is what
its entry says to do. Checks whose remedy is the cure itself are left to `next_steps.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    STACKS_SLOW_THE_HOST,
    TRACE_GUARDS,
)
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS, NOTHING_WAS_SUBMITTED, TORN_PAIRS
from layers.layer1_gpu_busy.guards_nsys import NSYS_GUARDS
from layers.layer1_gpu_busy.guards_run import RUN_GUARDS
from layers.layer1_gpu_busy.guards_torn import TORN_STEPS
from layers.layer1_gpu_busy.guards_width import BUSY_WITH_IDLE_SMS, WIDTH_GUARDS

RECORDED_SO = (
    (FEW_SAMPLES, f"{TRACE_MIN_STEPS} steady steps or more"),
    (STACKS_SLOW_THE_HOST, "without Python stacks"),
)
"""What a new recording must be like to be rid of each."""
ARE_THE_CURE = (
    *(IDLE_WHILE_QUEUED, NOTHING_WAS_SUBMITTED, BUSY_WITH_COPIES, BUSY_WITH_WAITING, BUSY_WITH_IDLE_SMS),
)
"""The next step says what their remedy says."""
TORN = [guard.code for guard in (DAMAGED_FILE, TORN_PAIRS, TORN_STEPS)]
"""Of a file that is not whole: it comes before whatever else it seems to say."""
DOUBTS_NAMED = 2
"""More than these are left to the list of checks."""

ALL_GUARDS: tuple[Guard[Any], ...] = (*TRACE_GUARDS, *DOUBT_GUARDS, *NSYS_GUARDS, *WIDTH_GUARDS, *RUN_GUARDS)
REMEDIES = {guard.code: first_clause(guard.remedy) for guard in ALL_GUARDS}


def without_doubt(guards: Sequence[Checked], cure: str) -> str:
    """The cure, after what removes the doubts that these guards left."""
    first = [*_remedies(guards), *_record_again(guards)][:DOUBTS_NAMED]
    return f"first {'; '.join(first)}. Then {cure}" if first else cure


def _remedies(guards: Sequence[Checked]) -> Iterator[str]:
    told = {guard.code for guard, _ in RECORDED_SO} | {guard.code for guard in ARE_THE_CURE}
    fired = dict.fromkeys(c.code for c in guards if c.fired and c.effect is Effect.DIRECTIONAL)
    doubts = [code for code in fired if code in TORN] or fired
    by_remedy: dict[str, list[str]] = {}
    for code in doubts:
        if code not in told and code in REMEDIES:
            by_remedy.setdefault(REMEDIES[code], []).append(code)
    yield from (f"{remedy} ({', '.join(codes)})" for remedy, codes in by_remedy.items())


def _record_again(guards: Sequence[Checked]) -> Iterator[str]:
    wanted = [(so, guard.code) for guard, so in RECORDED_SO if guard.fired_in(guards)]
    if wanted:
        how, codes = (", ".join(part) for part in zip(*wanted, strict=True))
        yield f"record again: {how} ({codes})"


def void_step(voided: Checked) -> str:
    """What would make a void result valid."""
    remedy = REMEDIES.get(voided.code)
    explain = f"perfkit explain {voided.code}"
    return f"{remedy} ({explain})" if remedy else explain
