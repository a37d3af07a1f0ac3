"""What Layer 1 finds in one trace: plain records, times in integer nanoseconds on the trace's clock.

`analyse.py` fills them by calling one file per concept (busy, replays, steps, idle, launches, kernels,
phases, operators, batches, overlap, symptoms); `judge.py` reads them. Ratios are shares 0..1. A field of None
was not measured, for the reason that its docstring gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layers.evidence.symptom import Symptom
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.clocks import NO_CLOCKS, Clocks
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, StreamWait

DEVICE_WINDOW = "device"
STEPS_WINDOW = "steps"
RECORDED_WINDOW = "recorded"

WINDOWS = {
    DEVICE_WINDOW: "first to last device activity",
    STEPS_WINDOW: "ProfilerStep range, as the host saw it",
    RECORDED_WINDOW: "all that was recorded",
}
"""The windows that busy ratios are taken over, in words."""


@dataclass(frozen=True, slots=True)
class Window:
    """A named stretch of trace time that a ratio is taken over."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class WindowRatio:
    """Busy time inside one window: unions of intervals, clipped to it."""

    window: Window
    device_op_ns: int
    kernel_ns: int

    @property
    def device_op_ratio(self) -> float | None:
        return self.device_op_ns / self.window.length_ns if self.window.length_ns else None

    @property
    def kernel_ratio(self) -> float | None:
        return self.kernel_ns / self.window.length_ns if self.window.length_ns else None


@dataclass(frozen=True, slots=True)
class StreamBusy:
    """One stream of a device inside the device window; `sum_ns` passes `busy_ns` where operations of
    different launches overlap."""

    stream: int
    events: int
    busy_ns: int
    sum_ns: int


@dataclass(frozen=True, slots=True)
class DeviceBusy:
    """How busy one device was. `device_window` (first to last device activity) is primary; `steps_window`
    is None where the file has no ProfilerStep annotations, `recorded_window` where it records nothing else.
    `sum_ns` is the plain sum of durations, shown only to say how far off it would be. `longest_gaps_ns` holds
    at most three, the longest first; `processes` counts the process ids that the operations are filed under
    (0: not known). `drained_steps_ratio` is the device-op ratio from the first ProfilerStep to
    the end of the last one or of the work launched in them, whichever is later: the host may run ahead.
    Of `ids` correlation ids, `shared_ids` name several launches, as no single process makes them.
    `short_kernels` counts kernels that are shorter than any device makes them."""

    device: int
    device_name: str
    events: int
    kernels: int
    device_window: WindowRatio
    steps_window: WindowRatio | None
    recorded_window: WindowRatio | None
    sum_ns: int
    longest_op_ns: int
    longest_op_name: str
    longest_gaps_ns: tuple[int, ...]
    zero_timestamps: int
    processes: int
    drained_steps_ratio: float | None
    streams: tuple[StreamBusy, ...]
    shared_ids: int = 0
    ids: int = 0
    short_kernels: int = 0


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Graph launches against the device operations recorded under them.

    `uncovered` launches have no device interval with their correlation id. The bounds are those of the
    busy ratio over the device window widened by the time that uncovered replays could have run:
    `high_ratio` takes that time as busy, `low_ratio` as idle (None: a window without length).
    `short_replays` counts replays of which only a part was recorded, `graph_ops` operations of graphs.
    """

    launches: int
    uncovered: int
    short_replays: int
    graph_ops: int
    low_ratio: float | None
    high_ratio: float | None


@dataclass(frozen=True, slots=True)
class LaunchCoverage:
    """Kernel launches of a whole trace (graph launches are in `ReplayCheck`), and how many have no operation.

    `captured` launches went into a graph instead of to the device and are in neither of the other counts.
    `at_the_end` of those without operations are among the last launches: a host far ahead when the profiler
    stopped, or a recording of the device that ended early. `operations_without_launch` have ids between those
    of recorded calls, and others of their name have their call. `lost_copies` of `copies` have no operation.
    """

    launches: int
    without_operations: int
    captured: int
    at_the_end: int = 0
    operations_without_launch: int = 0
    copies: int = 0
    lost_copies: int = 0


@dataclass(frozen=True, slots=True)
class LostLaunches:
    """Stretches from which launches are gone (`lost_launches.py`), and how many operators lost theirs there.
    `launching` operators of the trace hold a launch."""

    launching: int
    operators: int
    stretches: int


class StepKind(StrEnum):
    """The kinds of step that perfkit knows; engines annotate others too, in words of their own."""

    DECODE = "decode"
    EXTEND = "extend"
    """prefill, with or without a cached prefix"""
    MIXED = "mixed"
    """decode and prefill together"""
    STEP = "step"
    """nobody said what it computed"""


PREFILLING = (StepKind.EXTEND, StepKind.MIXED)
"""Kinds of step that compute prompt tokens."""
INFERENCE = (StepKind.DECODE, *PREFILLING)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the workload: `kind` is a `StepKind` or an engine's own word; batch and tokens where named.

    `start_ns`/`end_ns`: the step's time on the device (its operations), `host_start_ns`/`host_end_ns` its
    annotation on the host (the stretch of device time between two marks where steps were found by
    repetition).
    """

    name: str
    kind: str
    start_ns: int
    end_ns: int
    host_start_ns: int
    host_end_ns: int
    operations: int
    batch_size: int | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one device in time order, and the `method` that found them (empty: none found, and
    why). `on_host`: they have a time on the host of their own (else it equals their time on the device).
    """

    method: str
    steps: tuple[Step, ...]
    why_none: str = ""
    on_host: bool = False

    @property
    def working(self) -> tuple[Step, ...]:
        """Those with operations of this device: what a number per step counts."""
        return tuple(step for step in self.steps if step.operations)

    @property
    def count(self) -> str:
        """How many did device work, and of how many: `6 steps`, `1 of 6 steps with device work`."""
        n, all_steps = len(self.working), counted(len(self.steps), "step")
        return all_steps if n == len(self.steps) else f"{n:,} of {all_steps} with device work"


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """Host launches against device starts. Delays are start of operation minus start of the call that
    launched it.

    Delays, `empty_queue_share` and `queue_depth_*` are of the `tied_launches`, those with recorded
    operations; the rest is of all `launches`. `empty_queue_share` is the share that found nothing queued or
    running on the device (None: no correlated launches). `queue_depth_*` counts operations launched and not
    yet finished at each launch. `shorter_than_call_share` is that of kernels launched one by one that ran for
    less time than their call (HTA's "short kernels"); None: no such kernel. Where `clocks` do not agree,
    nothing that compares host and device is measured. `shared_ids`: ids of calls that are not one launch.
    """

    launches: int
    correlated_ops: int
    uncorrelated_ops: int
    rate_per_s: float | None
    delay_p50_ns: float | None
    delay_p90_ns: float | None
    call_p50_ns: float | None
    call_p99_ns: float | None
    queue_depth_p50: float | None
    queue_depth_max: int | None
    empty_queue_share: float | None
    shorter_than_call_share: float | None
    clocks: Clocks = NO_CLOCKS
    shared_ids: int = 0
    tied_launches: int = 0


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel (or copy) name: `share` is its summed time over the device's busy time (may pass 1 in
    total where streams overlap). `group` is one of `kernel_groups.KernelGroup`, by name."""

    name: str
    group: str
    n: int
    total_ns: int
    share: float
    median_ns: float
    max_ns: int


@dataclass(frozen=True, slots=True)
class CopyRow:
    """Copies of one direction (`to_host`: a program read device memory so). `total_ns` is their union,
    `exposed_ns` the part of it during which no kernel ran on the device, `nbytes` the sum over those that
    record it (None: none does)."""

    direction: str
    n: int
    total_ns: int
    exposed_ns: int
    nbytes: int | None
    to_host: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """Communication against computation on one device: unions, and the part of communication that nothing
    hides. `communication_ops` counts the communication kernels."""

    communication_ns: int
    computation_ns: int
    both_ns: int
    exposed_communication_ns: int
    communication_ops: int


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One named range (record_function or NVTX): its host time and the device operations launched inside it.

    `meanwhile_*` is work that other threads of the process launched while such a range was open. It may be
    the range's own (autograd launches the backward pass from a thread of its own) or have nothing to do with
    it, and a trace does not say which, so it is in neither of the other two.
    """

    name: str
    n: int
    host_p50_ns: float
    host_total_ns: int
    device_busy_ns: int
    device_ops: int
    meanwhile_busy_ns: int = 0
    meanwhile_ops: int = 0


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator's count per step; `grows_with_batch` when the count rises with the annotated batch
    size.
    """

    name: str
    per_step_median: float
    per_step_max: int
    grows_with_batch: bool
    slope_per_item: float | None


@dataclass(frozen=True, slots=True)
class BatchRow:
    """Steps of one annotated batch size: device time of a step."""

    kind: str
    batch_size: int
    steps: int
    p50_ns: float
    busy_p50_ns: float
    operations_p50: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """The device's time in one step, from its first operation to its last: busy while any stream ran
    anything, whichever step that belongs to. `idle_after_ns` is the idle time from there to the next step,
    None where none follows.
    """

    busy_ns: int
    idle_ns: int
    idle_after_ns: int | None

    @property
    def busy_share(self) -> float:
        """Of the time from its first operation to its last; 0 for no time."""
        length_ns = self.busy_ns + self.idle_ns
        return self.busy_ns / length_ns if length_ns else 0.0


@dataclass(frozen=True, slots=True)
class StripLane:
    """One stream of a strip: what `kinds` of work take its time, most first, and its busy time by column."""

    stream: int
    kinds: tuple[str, ...]
    busy_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """A stretch of time to be drawn in columns of equal width: how long each stream was busy in each, and how
    long the device idled in it for which cause.

    `idle_ns` is all idle time of the stretch by cause, to which the columns of each cause add up exactly.
    `streams` counts all that ran something, of which `lanes` has those with most operations. Of the `gaps`,
    `narrow_gaps` are narrower than a column, so they are not seen one by one; they last `narrow_gaps_ns`.
    `what` says which stretch it is, `step_name` its step's name (empty: the device window).
    """

    what: str
    start_ns: int
    end_ns: int
    operations: int
    streams: int
    lanes: tuple[StripLane, ...]
    idle_ns: dict[Cause, int]
    idle_columns_ns: dict[Cause, tuple[int, ...]]
    gaps: int
    narrow_gaps: int
    narrow_gaps_ns: int
    step_name: str = ""


def column_edges(start_ns: int, end_ns: int, columns: int) -> list[int]:
    """Where the columns of a strip begin, and where the last one ends."""
    return [start_ns + (end_ns - start_ns) * i // columns for i in range(columns + 1)]


@dataclass(frozen=True, slots=True)
class DeviceAnalysis:
    """Everything found for one device of one trace. Anatomy parts are None under --busy-only. `step_times`
    has one entry for each of `steps`.
    """

    busy: DeviceBusy
    replays: ReplayCheck
    steps: Steps | None = None
    step_times: tuple[StepTime, ...] = ()
    idle: IdleAnatomy | None = None
    stream_waits: tuple[StreamWait, ...] = ()
    launches: LaunchStats | None = None
    kernels: tuple[KernelRow, ...] = ()
    copies: tuple[CopyRow, ...] = ()
    overlap: Overlap | None = None
    phases: tuple[PhaseRow, ...] = ()
    operators: tuple[OperatorRow, ...] = ()
    batches: tuple[BatchRow, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    strip: Strip | None = None
