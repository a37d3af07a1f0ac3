"""The guards of a comparison of two traces: is the one the other after a change?

They weaken what the comparison says and nothing else: the new trace has a verdict of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import limit
from layers.layer1_gpu_busy.compare import Side
from layers.layer1_gpu_busy.runs import NAMES_IN_COMMON, same_work
from parsers.trace_model import KERNEL


@dataclass(frozen=True, slots=True)
class Sides:
    """What the guards look at: the earlier side and the later one."""

    a: Side
    b: Side


def _unlike_cards(sides: Sides) -> Outcome | None:
    card, other = (side.analysis.busy.device_name for side in (sides.a, sides.b))
    if not card or not other:
        return None
    if card == other:
        return Outcome(False, f"both on {card}")
    said = f"{sides.a.label} {card}, {sides.b.label} {other}; times of one say nothing of the other"
    return Outcome(True, f"different cards: {said}")


UNLIKE_CARDS = Guard(
    code="PK194",
    name="unlike-cards",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Kernels that became faster or slower from one trace to the other, all of them.",
    cause="The traces are of different cards. What a change of code did cannot be told from what the card "
    "did.",
    detection="--compare: the two traces name different products for the devices that are compared. (Not "
    "asked where one names none.)",
    remedy="Record both sides on one card: perfkit layer1 NEW --compare OLD.",
    source="perfkit: two sides differ in exactly one thing, or the difference has no cause.",
    check=_unlike_cards,
)


def _unlike_work(sides: Sides) -> Outcome:
    names, others = _kernel_names(sides.a), _kernel_names(sides.b)
    common = f"{len(names & others)} of {len(names)} and {len(others)} kernel names in common"
    if same_work(names, others):
        return Outcome(False, common)
    said = "other work, or the same work by other kernels (compiled, fused, another library)"
    return Outcome(True, f"{common}: {said}")


def _kernel_names(side: Side) -> set[str]:
    return {side.trace.names[i] for i in np.unique(side.ops.name_id[side.ops.kind == KERNEL])}


UNLIKE_WORK = Guard(
    code="PK195",
    name="unlike-work",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Most kernels gone, and as many new ones.",
    cause="The traces are of different models or loads; or the work is the same and its kernels were "
    "compiled, fused or taken from another library.",
    detection=f"--compare: less than {limit(NAMES_IN_COMMON)} of the kernel names of the side with fewer of "
    "them are on both sides.",
    remedy="Check that both sides ran one model under one load; where they did, compare the groups of "
    "kernels and the times per step, not the names.",
    source="Public captures of one workload share 0.77 to 1.00 of their names, other pairs at most 0.53.",
    check=_unlike_work,
)

COMPARISON_GUARDS: tuple[Guard[Sides], ...] = (UNLIKE_CARDS, UNLIKE_WORK)
