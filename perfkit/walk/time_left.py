"""About how long each part of a profile takes, and what is left: for people who wait, and nothing else."""

from __future__ import annotations

from collections.abc import Collection

from perfkit.walk.model import Part, Profile

START_S = 8.0
"""A server that starts and answers, and its samplers: the bundled engine on two cores. Models take longer."""
AROUND_PASS_S = 4.0
"""Samplers, and requests that are waited for."""
READ_TRACE_S = 15.0
"""To write and read a trace."""
ANSWERS_S = 10.0
"""A cell of Layer 5: every item once."""
AROUND_CAPTURE_S = 2.0
ARMS_OF_ANSWERS = 3


def expected_s(part: Part, profile: Profile) -> float:
    """Seconds of one part, from the amounts that the profile asks for."""
    a_pass = profile.warmup_s + AROUND_PASS_S
    match part:
        case Part.PREFLIGHT:
            return START_S
        case Part.LAYER1:
            return profile.trace_s + READ_TRACE_S
        case Part.STAGES:
            return profile.events_s + START_S
        case Part.LAYER2:
            return (profile.captures + profile.active_captures + 1) * (profile.capture_s + AROUND_CAPTURE_S)
        case Part.LAYER3:
            return len(profile.concurrencies) * profile.sweep_repeats * (profile.sweep_s + a_pass)
        case Part.LAYER4:
            return 2 * profile.pairs * (profile.pass_s + a_pass + START_S)
        case Part.LAYER5:
            return ARMS_OF_ANSWERS * (START_S + _cells(profile) * ANSWERS_S)


def left_s(part: Part, profile: Profile, elapsed_s: float, done: Collection[Part]) -> float:
    """What this part, and those behind it that are not done or left out, still take."""
    behind = [one for one in Part if list(Part).index(one) > list(Part).index(part) and one not in done]
    rest = max(0.0, expected_s(part, profile) - elapsed_s)
    return rest + sum(expected_s(one, profile) for one in behind)


def _cells(profile: Profile) -> int:
    """Of one arm of Layer 5: cold and warm, whole and streamed, at each of its loads."""
    loads = next(one for one in profile.answers if one.startswith("--concurrency")).count(",") + 1
    return 2 * loads * (1 if "--no-stream" in profile.answers else 2)
