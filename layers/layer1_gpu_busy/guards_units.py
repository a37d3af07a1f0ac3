"""The guard of Layer 1 on units: durations that no device makes."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.busy import SHORTEST_KERNEL_NS
from layers.layer1_gpu_busy.guard_checks import TraceFacts

SHORT_SHARE = 0.1
"""Of kernels, those shorter than any, from which their lengths are in another unit. perfkit's choice: no
public trace has one."""


def _impossible_lengths(facts: TraceFacts) -> Outcome | None:
    busy = facts.device.busy if facts.device is not None else None
    if busy is None or not busy.kernels:
        return None
    short = busy.short_kernels
    message = (
        f"{short:,} of {counted(busy.kernels, 'kernel')} end within {SHORTEST_KERNEL_NS} ns of their start"
    )
    return Outcome(short > SHORT_SHARE * busy.kernels, f"{message} ({pct(short / busy.kernels)})")


IMPOSSIBLE_LENGTHS = Guard(
    code="PK197",
    name="impossible-lengths",
    layer="layer1",
    effect=Effect.VOID,
    sees="A busy ratio next to 0 in a trace that looks like any other.",
    cause="The durations are in another unit than the timestamps: a tool that wrote or changed the file put "
    "milliseconds where the format has microseconds. Each operation then has a thousandth of its length, and "
    "the rest of it looks like idle time.",
    detection=f"More than {limit(SHORT_SHARE)} of the kernels have a length, and one under "
    f"{SHORTEST_KERNEL_NS} ns. A device takes longer to begin and to end any kernel.",
    remedy="Take the file as the profiler wrote it, or correct the unit of its durations (microseconds).",
    source="perfkit: the shortest of 84,000 kernels with a length in 49 public traces lasts 639 ns, and "
    "medians are 2 µs and more; with durations divided by 1,000 medians are 2 to 133 ns.",
    check=_impossible_lengths,
)

UNIT_GUARDS: tuple[Guard[TraceFacts], ...] = (IMPOSSIBLE_LENGTHS,)
