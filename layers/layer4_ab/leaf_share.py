"""The suspect's own share of its thread's time, before and after: did the change take away what it was to?

Both arms are sampled by Layer 2 beside the runs that are timed, never during them: a look costs time. A
throughput that rose while the suspect's share stayed is somebody else's doing.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Effect
from layers.evidence.strength_table import STACKS_MIN_TICKS
from layers.evidence.wording import first_few
from layers.layer2_stacks.collect import artifact_of
from layers.layer2_stacks.compare import interval_of_difference
from layers.layer2_stacks.comparison import compare_weighed
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.suspect import Place, Suspect, suspects
from layers.layer2_stacks.weigh import Weighed, weigh
from layers.layer4_ab.model import LeafEvidence, LeafShare


def leaf_evidence(
    before: Sequence[Capture], after: Sequence[Capture], places: Sequence[str], problems: Sequence[str] = ()
) -> LeafEvidence:
    """Each place in each mode that both arms were recorded in. Pure.

    `problems`: why captures of an arm are missing; with them stands why those that are there do not compare.
    """
    sides = weigh(before), weigh(after)
    why = [*problems, *_why_not(*sides)]
    of_a, of_b = (tuple(artifact_of(facts.capture) for facts in side.sound) for side in sides)
    if why:
        return LeafEvidence((), tuple(why), of_a, of_b)
    wanted = [Place(text) for text in places]
    old, new = (suspects(side, wanted) for side in sides)
    shares = [_share(one, match) for one in old if (match := _same(one, new)) is not None]
    few = [one for one in shares if min(one.before.ticks, one.after.ticks) < STACKS_MIN_TICKS]
    said = [f"{one.place} ({one.mode}): fewer than {STACKS_MIN_TICKS} ticks of an arm" for one in few]
    return LeafEvidence(tuple(one for one in shares if one not in few), tuple(said), of_a, of_b)


def _why_not(old: Weighed, new: Weighed) -> list[str]:
    """Why two sides cannot be compared; nothing where they can."""
    for arm, side in (("A", old), ("B", new)):
        if side.reading is None:
            return [f"no sound capture of {arm}"]
    assert old.reading is not None and new.reading is not None
    compared = compare_weighed(old, new, new.reading)
    void = [f"{g.title}: {g.message}" for g in compared.guards if g.fired and g.effect is Effect.VOID]
    if void:
        return [first_few(void)]
    threads = [side.reading.scope.entry for side in (old, new) if side.reading is not None]
    return (
        [f"the thread of A enters at {threads[0]}, that of B at {threads[1]}"] if len({*threads}) > 1 else []
    )


def _same(one: Suspect, among: Sequence[Suspect]) -> Suspect | None:
    return next((two for two in among if (two.place, two.mode) == (one.place, one.mode)), None)


def _share(old: Suspect, new: Suspect) -> LeafShare:
    low, high = interval_of_difference(old.share, new.share)
    return LeafShare(old.place.text, str(old.mode), old.scope, old.share, new.share, low, high)
