"""The guard of Layer 1 on a recording that perfkit made: did the recorded command itself end well?"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.layer1_gpu_busy.judge_tags import ended_well


def _failed(exit_code: int) -> Outcome:
    return Outcome(not ended_well(exit_code), f"the recorded command ended with exit code {exit_code}")


RECORDED_COMMAND_FAILED = Guard(
    code="PK169",
    name="recorded-command-failed",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A busy ratio of a program that crashed, or never came up.",
    cause="The recording holds what ran before the end: start-up, warm-up, a part of the load. That is not "
    "the service at work.",
    detection="nsys ended with an exit code other than 0, and not because the command was stopped by hand "
    "(SIGINT, SIGTERM).",
    remedy="Make the command run to its end without nsys, then record it again.",
    source="nsys user guide: nsys profile ends with the exit code of the command.",
    check=_failed,
)

RECORDING_GUARDS: tuple[Guard[int], ...] = (RECORDED_COMMAND_FAILED,)
"""On the exit code of a recorded command."""
