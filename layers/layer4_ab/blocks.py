"""What blocks inside a step, from a trace of an arm: its own cost, and apart from it what it prevents.

A synchronise, a copy to the host, a computation on the host: each stops the thread that submits work. Its own
cost is the time for which the device stood still meanwhile. What it prevents is that the host runs ahead of
the device (lookahead) or hands over a step in one call (a captured graph): then the device waits for every
launch, which is time of its own, and often the larger part by far. Counters show whether it was prevented:
launches that found the device empty, graph launches, copies to the host, each a step.

The gain is the most that a step could win were the device never idle for that reason (Amdahl): what follows
may be bounded by something else. Steps are those that the trace names or repeats; without any nothing is
told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.measurement import Artifact
from layers.evidence.wording import pct
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis

OWN = {
    "synchronise": Cause.SYNC,
    "copy to the host": Cause.COPY,
    "host computation": Cause.HOST_WORK,
}
"""What blocks, and the cause of idle time that is its own cost."""
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Blocks:
    """One arm: means over `steps` steps of all its traces and devices, in ms of a step of `step_ms`.

    `own_ms` by what blocks; `prevented_ms`: idle for want of launches that were made ahead. A counter that a
    trace does not tell is None. `operations` and `captures`: what it rests on.
    """

    arm: str
    steps: int
    step_ms: float
    own_ms: dict[str, float]
    prevented_ms: float
    empty_share: float | None
    graph_launches: float
    copies_to_host: float
    operations: int
    captures: int
    artifacts: tuple[Artifact, ...]

    def gain(self, idle_ms: float) -> float | None:
        """By how much of itself a step gets faster at most without so much idle time; None for all of it."""
        return idle_ms / (self.step_ms - idle_ms) if idle_ms < self.step_ms else None

    @property
    def all_own_ms(self) -> float:
        """Of everything that blocks."""
        return sum(self.own_ms.values())

    @property
    def gain_own(self) -> float | None:
        """Were what blocks gone, and the host still never ahead."""
        return self.gain(self.all_own_ms)

    @property
    def gain_all(self) -> float | None:
        """Were what it prevents to run as well."""
        return self.gain(self.all_own_ms + self.prevented_ms)


def blocks_of(arm: str, traces: Sequence[TraceAnalysis]) -> Blocks | None:
    """What blocks in the steps of an arm; None where no device of its traces has steps. Pure."""
    devices = [device for trace in traces for device in trace.devices if _has_steps(device)]
    steps = sum(len(device.steps.working) for device in devices if device.steps)
    if not steps:
        return None

    def a_step(total_ns: float) -> float:
        return total_ns / NS_PER_MS / steps

    own = {what: a_step(sum(_idle(devices, cause))) for what, cause in OWN.items()}
    return Blocks(
        arm=arm,
        steps=steps,
        step_ms=a_step(sum(device.busy.device_window.window.length_ns for device in devices)),
        own_ms=own,
        prevented_ms=a_step(sum(_idle(devices, Cause.LAUNCH_BOUND))),
        empty_share=_empty_share(devices),
        graph_launches=sum(device.replays.launches for device in devices) / steps,
        copies_to_host=sum(row.n for device in devices for row in device.copies if row.to_host) / steps,
        operations=sum(device.busy.events for device in devices),
        captures=len(traces),
        artifacts=tuple(trace.artifact for trace in traces),
    )


def _has_steps(device: DeviceAnalysis) -> bool:
    return device.steps is not None and bool(device.steps.steps) and device.idle is not None


def _idle(devices: Iterable[DeviceAnalysis], cause: Cause) -> list[int]:
    return [device.idle.by_cause_ns.get(cause, 0) for device in devices if device.idle is not None]


def _empty_share(devices: Iterable[DeviceAnalysis]) -> float | None:
    """Launches that found the device empty, of those whose operations are recorded."""
    told = [one for device in devices if (one := device.launches) and one.empty_queue_share is not None]
    tied = sum(one.tied_launches for one in told)
    return sum((one.empty_queue_share or 0.0) * one.tied_launches for one in told) / tied if tied else None


def words(found: Blocks) -> str:
    """What blocks, what it costs itself, what it prevents, and the two gains."""
    own = ", ".join(f"{what} {ms:.3g} ms" for what, ms in found.own_ms.items() if ms > 0) or "nothing"
    empty = "" if found.empty_share is None else f"{pct(found.empty_share)} of launches found it empty, "
    copies = f"{found.copies_to_host:.3g} copies to the host"
    counters = f"{found.graph_launches:.3g} graph launches and {copies} a step"
    return (
        f"{found.arm.upper()}, a step of {found.step_ms:.3g} ms (n = {found.steps:,}): the device stands "
        f"still for {own} itself; behind that it waits {found.prevented_ms:.3g} ms for launches not made "
        f"ahead ({empty}{counters}). Gain at most {_gain(found.gain_own)} without the first, "
        f"{_gain(found.gain_all)} without both"
    )


def entry(found: Blocks) -> dict[str, Any]:
    """For --json."""
    return {
        "arm": found.arm,
        "steps": found.steps,
        "step_ms": found.step_ms,
        "own_ms": found.own_ms,
        "prevented_ms": found.prevented_ms,
        "empty_queue_share": found.empty_share,
        "graph_launches_a_step": found.graph_launches,
        "copies_to_host_a_step": found.copies_to_host,
        "gain_own": found.gain_own,
        "gain_with_prevented": found.gain_all,
        "words": words(found),
    }


def _gain(gain: float | None) -> str:
    return "without bound" if gain is None else pct(gain)
