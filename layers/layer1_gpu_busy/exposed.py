"""Time in which a device works and computes nothing: communication that no computation hides, and copies and
sets that no kernel hides.

Both count as busy, so no idle time shows them. A copy beside exposed communication is hidden by it: of the
two, communication is what waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.model import DeviceAnalysis, Overlap, WindowRatio
from layers.layer1_gpu_busy.overlap import EXPOSED_SHARE
from layers.layer1_gpu_busy.symptoms.device import S12

ALL_RANKS = "traces of all ranks together, since a rank that arrives late looks the same; then overlap"
FEWER_COPIES = f"pinned memory and a stream of their own, or fewer of them (perfkit explain {S12.code})"


@dataclass(frozen=True, slots=True)
class Exposed:
    """One kind of such time over the device window, what it is a part of, and what to do about it. What
    is not `worth_it` is left to the tables."""

    what: str
    ns: int
    share: float
    of: str
    remedy: str

    @property
    def worth_it(self) -> bool:
        return self.share > EXPOSED_SHARE

    def __str__(self) -> str:
        return f"{self.what} {time_text(self.ns)}, {pct(self.share)} of the window{self.of}"


def exposed_times(device: DeviceAnalysis) -> tuple[Exposed, ...]:
    """What of it there is, most first."""
    window = device.busy.device_window
    copies_ns = window.device_op_ns - window.kernel_ns
    found = [] if device.overlap is None else [_communication(device.overlap, window)]
    found.append(_exposed("copies and sets outside kernels", copies_ns, window, "", FEWER_COPIES))
    return tuple(sorted((e for e in found if e.ns), key=lambda exposed: -exposed.ns))


def _communication(overlap: Overlap, window: WindowRatio) -> Exposed:
    kernels = counted(overlap.communication_ops, "kernel")
    of = f" (of {time_text(overlap.communication_ns)} in {kernels})"
    exposed_ns = overlap.exposed_communication_ns
    return _exposed("communication outside computation", exposed_ns, window, of, ALL_RANKS)


def _exposed(what: str, ns: int, window: WindowRatio, of: str, remedy: str) -> Exposed:
    return Exposed(what, ns, ns / max(window.window.length_ns, 1), of, remedy)
