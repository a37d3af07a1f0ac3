"""What each cause of idle time means, in a user's words: for `perfkit explain` and docs/traces.md.

The rules themselves are in `idle_causes.py` and `operator_runs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.wording import time_text
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.next_steps import BY_CAUSE
from layers.layer1_gpu_busy.operator_runs import MANY, WORK_NS
from parsers.trace_model import PYTHON_FRAME_FLOOR_NS

LONG = time_text(PYTHON_FRAME_FLOOR_NS)
SHORTEST_PART = 6
"""Characters of a part of a name by which a cause is found."""

WHOSE = (
    "A gap is put down to what the thread that launched the next operation did, from the beginning of the "
    "gap until its launch call returned."
)

MEANINGS = {
    Cause.LAUNCH_BOUND: "The thread was on its way to the launch: in runtime calls, in operators that launch "
    f"something or a few short ones that do not, or in pauses under {LONG} between them. Launching cost the "
    "host more than running cost the device.",
    Cause.HOST_WORK: "The thread did something other than launching: Python frames, a named range, an "
    f"operator or runtime call of {LONG} or more that launches nothing, or many short operators without a "
    f"launch between them ({MANY} or more that take {LONG} together, or any number that take "
    f"{time_text(WORK_NS)}).",
    Cause.NOTHING_SUBMITTED: f"For {LONG} or more nothing was recorded of the thread, or it was in a frame "
    "that waits to be given work (queue.get, recv, sleep). There was no load, or it ran code that the trace "
    "does not hold: Python, where no stacks were recorded.",
    Cause.SYNC: "The thread was in a call that waits for the device (cudaStreamSynchronize and the like) "
    "though the device had nothing left to do.",
    Cause.COPY: "The thread was in a copy call that returns only once its copy is done.",
    Cause.QUEUED: "The launch call had returned before the gap began: the work waited for an event, another "
    "stream, another rank. It is not the host's fault.",
    Cause.UNKNOWN: "No call that launched the next operation is in the trace.",
}


@dataclass(frozen=True, slots=True)
class CauseEntry:
    """One cause of idle time, as it is explained."""

    name: str
    whose: str
    meaning: str
    look_next: str


def find_cause(text: str) -> CauseEntry | None:
    """The one cause whose name is the text or holds its words, in any case; None where there is none."""
    wanted = " ".join(text.casefold().split())
    fits = [c for c in Cause if wanted == c or (len(wanted) >= SHORTEST_PART and f" {wanted} " in f" {c} ")]
    return CauseEntry(str(fits[0]), WHOSE, MEANINGS[fits[0]], BY_CAUSE[fits[0]]) if len(fits) == 1 else None
