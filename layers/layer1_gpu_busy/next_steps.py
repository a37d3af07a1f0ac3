"""Where to look after Layer 1, told from what was found: the verdict, and the chief cause of idle time."""

from __future__ import annotations

from layers.layer1_gpu_busy.exposed import Exposed, exposed_times
from layers.layer1_gpu_busy.guards import IDLE_WHILE_QUEUED, RATIOS_ALONE
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.symptoms.device import S12
from layers.layer1_gpu_busy.thresholds import Word

BY_CAUSE = {
    Cause.LAUNCH_BOUND: "launch overhead: CUDA graphs, fusion or torch.compile, then the trace again",
    Cause.HOST_WORK: "Layer 2: stacks of the launching thread (py-spy with --idle) say which line",
    Cause.SYNC: "the line that waits: torch.cuda.set_sync_debug_mode, or stacks with --idle",
    Cause.COPY: "the copy that blocks: pinned memory and non_blocking, or keep the value on the device",
    Cause.NOTHING_SUBMITTED: "what the launching thread waited for: whether there is load, and what holds it",
    Cause.QUEUED: "first find what the device waited for: in most of its idle time the work had been "
    f"launched, so the launching thread is not the first suspect (perfkit explain {IDLE_WHILE_QUEUED.code})",
    Cause.UNKNOWN: "a trace that holds the host side too (ProfilerActivity.CPU)",
}
"""What each chief cause of idle time leads to."""
NO_ANATOMY = f"where the idle time lies: the same command without --busy-only ({RATIOS_ALONE.code})"
DEVICE_BOUND = "kernels: perfkit roofline, then the ncu command of the top kernels"
COPIES = (
    f"copies, which fill most of the busy time: by direction and size (symptom {S12.code}), before any kernel"
)
NO_IDLE = "a second method beside the trace (dcgmi dmon, nvidia-smi dmon)"


def next_step(word: Word, device: DeviceAnalysis) -> str:
    """Where one device's result leads: to the idle time where the host is the limit, else to what takes most,
    exposed communication and copies among it."""
    if word is Word.HOST_BOUND:
        return _idle_step(device)
    ratios = device.busy.device_window
    if word is Word.DEVICE_BOUND and 2 * ratios.kernel_ns < ratios.device_op_ns:
        return COPIES
    main = DEVICE_BOUND if word is Word.DEVICE_BOUND else _idle_step(device)
    idle_ns = ratios.window.length_ns - ratios.device_op_ns
    exposed = [e for e in exposed_times(device) if e.worth_it]
    first = [e for e in exposed if word is Word.DEVICE_BOUND or e.ns > idle_ns]
    steps = [*map(_exposed_step, first), main, *map(_exposed_step, exposed[len(first) :])]
    return ". Then ".join(steps)


def _exposed_step(exposed: Exposed) -> str:
    return f"{exposed}: {exposed.remedy}"


def _idle_step(device: DeviceAnalysis) -> str:
    """Where the idle time leads."""
    if device.idle is None:
        return NO_ANATOMY
    if not device.idle.causes:
        return NO_IDLE
    chief, _ = device.idle.causes[0]
    return BY_CAUSE[chief]
