"""The guard of Layer 1 on steps whose launches are gone: a file that was torn and closed again."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.step_launches import LIKE_THE_OTHERS, SOME_OPERATORS


def _torn_steps(facts: TraceFacts) -> Outcome | None:
    steps = facts.device.steps if facts.device is not None else None
    if facts.device is None or steps is None or not steps.on_host:
        return None
    torn, all_steps = facts.device.steps_without_launches, counted(len(steps.steps), "step")
    if not torn:
        return Outcome(False, f"{all_steps}, none with host operators alone")
    what = f"{torn:,} of {all_steps} have their host operators, and not one launch or device operation"
    return Outcome(True, f"{what}: a torn file")


TORN_STEPS = Guard(
    code="PK196",
    name="torn-steps",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Steps in which the host did what it does in every step, and the device nothing at all.",
    cause="A profiler writes operators first, then launches, then device operations. A file that was cut and "
    "made valid JSON again has lost the latter; or the recording of runtime and device ended before the "
    "profiler did. What is left stands for the steps that still have them.",
    detection="After the first step with device work, one without a device operation and without a launch on "
    f"any thread, with {SOME_OPERATORS} host operators or more and at least {limit(LIKE_THE_OTHERS)} of what "
    "steps with device work have at the median, where some of these hold launches.",
    remedy="Compare size and checksum of the file with the original, or record again.",
    source="perfkit: a public training trace of 6 steps, cut in half and closed, keeps all 40,506 operators "
    "and 990 of 24,692 runtime calls.",
    check=_torn_steps,
)

TORN_GUARDS: tuple[Guard[TraceFacts], ...] = (TORN_STEPS,)
