"""The guards on a profile that a server was told to take: was there any load, and was it whole?"""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.collect_profile import Profiled
from layers.layer1_gpu_busy.thresholds import Word
from layers.preflight.watch import FOREIGN_CPU_SHARE

WAITED_LIMIT = 0.20
"""perfkit's choice, of the profile, as for stacks (PK234): what is in a run queue launches nothing."""


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """A profile, and the word of the verdict that its traces led to."""

    profiled: Profiled
    word: str

    @property
    def busy_all_the_same(self) -> bool:
        """Whether the device was kept busy, and is none that the host's own cores emulate."""
        return self.word == Word.DEVICE_BOUND and self.profiled.kind != BundledAdapter.kind


def _idle(facts: ProfileFacts) -> Outcome | None:
    beside = facts.profiled.beside
    if beside is None:
        return None
    told = {"running": beside.running, "waiting": beside.waiting}
    known = {name: value for name, value in told.items() if value is not None}
    if not known:
        return None
    said = ", ".join(f"{value:.3g} {name}" for name, value in known.items())
    text = f"{said} on average of {counted(beside.n, 'page')} of its metrics"
    return Outcome(not any(known.values()), text)


def _cut_short(facts: ProfileFacts) -> Outcome:
    profiled = facts.profiled
    return Outcome(profiled.cut_short, f"{profiled.lasted_s:.1f} s of {profiled.asked_s:g} s")


def _no_core(facts: ProfileFacts) -> Outcome | None:
    """Cores that others took leave a device idle, and busy none."""
    host = facts.profiled.host
    if host is None or (host.foreign_cores is None and host.longest is None):
        return None
    said, fired = list[str](), False
    if host.foreign_cores is not None:
        said.append(f"others kept {host.foreign_cores:.2g} of {counted(host.cores, 'core')} busy")
        fired |= host.foreign_cores >= FOREIGN_CPU_SHARE * host.cores
    if (one := host.longest) is not None:
        whose = f"thread {one.thread} of process {one.pid}"
        said.append(
            f"{whose} waited for a CPU for {pct(one.share)} of the profile, the longest of the server's"
        )
        fired |= one.share > WAITED_LIMIT
    return Outcome(fired, "; ".join(said), Effect.NOTE if facts.busy_all_the_same else None)


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

NO_CORE_PROFILED = Guard(
    code="PK186",
    name="profiled-without-cores",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A device that idles between operations that had long been launched, or a low busy ratio.",
    cause="Others kept the host's cores busy, or the server, the load client and the profiler were more than "
    "the cores there are: the launching thread stood in a run queue. A device that is emulated on the host's "
    "cores stands there as well.",
    detection=f"{limit(FOREIGN_CPU_SHARE)} of the cores or more busy with what is not ours over the "
    "profile (/proc/stat), or a thread of the server that waited for a CPU for more than "
    f"{limit(WAITED_LIMIT)} of it (schedstat). Not checked where the server's processes are not "
    "seen from here; a note where the device is busy all the same and is no emulated one.",
    remedy="Free cores, or send the load from another machine; perfkit preflight --watch tells who takes "
    "them.",
    source="Linux Documentation/scheduler/sched-stats.rst; PK022 and PK181 say the same of other runs.",
    check=_no_core,
)

PROFILE_GUARDS: tuple[Guard[ProfileFacts], ...] = (IDLE_PROFILED, PROFILE_CUT_SHORT, NO_CORE_PROFILED)
