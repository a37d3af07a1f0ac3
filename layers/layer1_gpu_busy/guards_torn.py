"""The guard of Layer 1 on stretches whose launches are gone: a file that was torn and closed again."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.lost_launches import ENOUGH_OPERATORS, LIKE_LAUNCHING, SAME_WORK


def _torn_stretches(facts: TraceFacts) -> Outcome | None:
    lost = facts.trace.lost_launches
    if facts.device is None or lost is None or not lost.launching:
        return None
    launching = counted(lost.launching, "operator")
    if not lost.operators:
        return Outcome(False, f"{launching} launched work, no stretch of them lacks its launches")
    where = counted(lost.stretches, "stretch")
    what = f"{counted(lost.operators, 'operator')} like the {lost.launching:,} that launch have no launch"
    return Outcome(True, f"{what}, in {where} from which calls are missing: a torn file")


TORN_STRETCHES = Guard(
    code="PK196",
    name="torn-stretches",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A stretch in which the host does what launches work elsewhere, and neither launch nor operation is "
    "there.",
    cause="A profiler writes operators first, then launches, then device operations. A file that was cut and "
    "made valid JSON again has lost some of the latter with their calls; or the recording of runtime and "
    "device ended before the profiler did. What is left stands for the rest alone, and the hole looks like a "
    "slow host. Not told: fewer operators in a row (one launch of ten that is gone everywhere), stretches "
    "of graph replays alone, the beginning of a file up to its first call, and what went with its operators.",
    detection=f"{ENOUGH_OPERATORS} or more operators of names that launch elsewhere (outside of such "
    "stretches half of their operators do) between one launch of their process and the next. There, "
    f"{limit(LIKE_LAUNCHING)} or more of the correlation ids are missing that as many launches take "
    "elsewhere (a runtime numbers all calls), and most operators took as much of the time: with nothing to "
    "launch they are over sooner. Operations whose calls were never recorded are not lost. Or so many after "
    f"the last call, where their names make {limit(SAME_WORK)} of the launches.",
    remedy="Compare size and checksum of the file with the original, or record again.",
    source="perfkit: a public training trace of 6 steps, cut in half and closed, keeps all 40,506 operators "
    "and 990 of 24,692 runtime calls. No whole public trace of 49 shows it. Of launches cut out of the "
    "middle of 25 with what they launched (20 % of them), it shows 23.",
    check=_torn_stretches,
)

TORN_GUARDS: tuple[Guard[TraceFacts], ...] = (TORN_STRETCHES,)
