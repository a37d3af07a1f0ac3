"""What every symptom of a trace is told from: one device of it, with what this layer found there.

The shape of an entry is `layers.evidence.symptom`. A trace shows phenomena; a symptom is not a root cause
without an anchor in the code.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.wording import counted, time_text
from layers.layer1_gpu_busy.idle_model import IdleAnatomy
from layers.layer1_gpu_busy.model import CopyRow, DeviceBusy, LaunchStats, ReplayCheck, Steps, Window
from layers.layer1_gpu_busy.runtime_calls import Launched
from parsers.trace_model import I64, DeviceOps, DeviceTrace

TRACELENS = "TraceLens"
HTA = "Holistic Trace Analysis"
NO_HOST = "the trace holds no host calls that launched this work: record CPU activities too"


@dataclass(frozen=True, slots=True)
class SymptomFacts:
    """One device of one trace, with what the other files of this layer found in it.

    `launched` has the call of each operation, `step_of` the index of its step (NO_STEP: in none), `gpu` the
    card that the user named (empty: the trace's name counts).
    """

    trace: DeviceTrace
    ops: DeviceOps
    launched: Launched
    busy: DeviceBusy
    replays: ReplayCheck
    steps: Steps
    step_of: I64
    idle: IdleAnatomy | None = None
    launches: LaunchStats | None = None
    copies: tuple[CopyRow, ...] = ()
    gpu: str = ""

    @property
    def window(self) -> Window:
        """First to last activity of the device: what shares are taken of unless they are of steps."""
        return self.busy.device_window.window

    def share_of_window(self, ns: float) -> float:
        return ns / self.window.length_ns if self.window.length_ns else 0.0

    @property
    def host_is_known(self) -> bool:
        """Whether the trace ties device work to the host calls that launched it."""
        return self.idle is not None and self.launches is not None and self.launches.correlated_ops > 0


def window_text(facts: SymptomFacts) -> str:
    """The device window with its n, as numbers texts name it."""
    return f"device window of {time_text(facts.window.length_ns)} ({counted(facts.busy.events, 'operation')})"
