"""What the checks of a profile do to the result of the traces that it made."""

from __future__ import annotations

from dataclasses import replace

from layers.evidence.guard import Effect, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer1_gpu_busy.collect_profile import Profiled
from layers.layer1_gpu_busy.guards_profile import PROFILE_GUARDS, ProfileFacts
from layers.layer1_gpu_busy.judge_live import with_live_checks

PROFILE_AGAIN = "start the load first, then profile again"


def with_profile(result: Result, profiled: Profiled) -> Result:
    """The result with the guards of the profile: of an idle server it is void, and leaves no finding."""
    checked = apply_guards(PROFILE_GUARDS, ProfileFacts(profiled, result.verdict.word))
    judged = with_live_checks(result, checked, cut_short=profiled.cut_short)
    void = next((guard for guard in checked if guard.fired and guard.effect is Effect.VOID), None)
    if void is None:
        return judged
    why = f"{void.title}: {void.message}"
    verdict = Verdict("void", False, why, Exit.INVALID, PROFILE_AGAIN)
    return replace(judged, verdict=verdict, findings=[])
