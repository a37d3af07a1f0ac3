"""The guards on a profile that a server was told to take: was there any load, and was it whole?"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.collect_profile import Profiled


def _idle(profiled: Profiled) -> Outcome | None:
    beside = profiled.beside
    if beside is None:
        return None
    told = {"running": beside.running, "waiting": beside.waiting}
    known = {name: value for name, value in told.items() if value is not None}
    if not known:
        return None
    said = ", ".join(f"{value:.3g} {name}" for name, value in known.items())
    text = f"{said} on average of {counted(beside.n, 'page')} of its metrics"
    return Outcome(not any(known.values()), text)


def _cut_short(profiled: Profiled) -> Outcome:
    return Outcome(profiled.cut_short, f"{profiled.lasted_s:.1f} s of {profiled.asked_s:g} s")


IDLE_PROFILED = Guard(
    code="PK184",
    name="idle-server-profiled",
    layer="layer1",
    effect=Effect.VOID,
    sees="A trace with gaps between few operations, of a server that is said to be slow.",
    cause="Nothing was asked of it while it profiled itself: the load had ended, went to another server, or "
    "had not begun. The gaps are rest.",
    detection="The server's own metrics say 0 running and 0 waiting on every page of the profile.",
    remedy="Start the load that is too slow, then profile; behind a router name the worker itself.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): profile under load only.",
    check=_idle,
)

PROFILE_CUT_SHORT = Guard(
    code="PK185",
    name="profile-cut-short",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A trace of less time than was asked for.",
    cause="Somebody ended it: Ctrl-C, SIGTERM, a terminal that went away. The profiler was stopped, and what "
    "it had is judged.",
    detection="perfkit was told to end before the time was up.",
    remedy="Profile again where there are too few steps (PK105).",
    source="perfkit stops a server's profiler however it ends itself.",
    check=_cut_short,
)

PROFILE_GUARDS: tuple[Guard[Profiled], ...] = (IDLE_PROFILED, PROFILE_CUT_SHORT)
