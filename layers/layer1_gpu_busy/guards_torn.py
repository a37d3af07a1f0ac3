"""The guards of Layer 1 on work that a file has lost without a trace of its own: stretches whose launches are
gone, and copies of which the calls alone are left.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.lost_launches import ENOUGH_OPERATORS, LIKE_LAUNCHING, SAME_WORK
from layers.layer1_gpu_busy.thresholds import Word

ENOUGH_COPIES = 3
"""Calls without an operation that are no accident: a copy of no bytes has none. perfkit's choice."""
LOST_COPIES = 0.5
"""Share of the copy calls without an operation from which copies were not recorded. perfkit's choice; in the
real traces at hand none lacks its operation."""


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


def _lost_copies(facts: TraceFacts) -> Outcome | None:
    cover = facts.trace.coverage
    if facts.trace.busy_only or facts.device is None or not cover.copies:
        return None
    calls = counted(cover.copies, "copy call")
    fired = cover.lost_copies >= max(ENOUGH_COPIES, LOST_COPIES * cover.copies)
    effect = Effect.NOTE if facts.word is Word.DEVICE_BOUND else None
    return Outcome(fired, f"{cover.lost_copies:,} of {calls} without an operation on any device", effect)


COPIES_WITHOUT_OPERATIONS = Guard(
    code="PK199",
    name="copies-without-operations",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Calls that copy, and no copies on the device.",
    cause="Copies were not recorded, or left out of the file by whoever made it smaller. Their time counts "
    "as idle, and what waited for them looks like a slow host.",
    detection=f"{limit(LOST_COPIES)} or more of the outermost copy calls, and {ENOUGH_COPIES} at least, have "
    "no operation with their correlation id (captures apart, and calls after the last that has one: there "
    "the recording of the device may have ended). A note where the ratio is device-bound: what is missing "
    "could only add to it.",
    remedy="Record again with all device activities, or give the file as the profiler wrote it.",
    source="perfkit: in none of 24 public traces with copy calls does one lack its operation.",
    check=_lost_copies,
)

TORN_GUARDS: tuple[Guard[TraceFacts], ...] = (TORN_STRETCHES, COPIES_WITHOUT_OPERATIONS)
