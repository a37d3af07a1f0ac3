"""What the guards of Layer 1 look for in a trace: one pure function a guard.

Each looks at the facts of one device of one trace (`TraceFacts`; `device` is None where the trace holds no
device operation at all) and answers whether its trap is there, with the numbers that say so.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import TRACE_MIN_OPERATIONS, TRACE_MIN_STEPS
from layers.evidence.wording import pct
from layers.layer1_gpu_busy.model import Cause, DeviceAnalysis
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_categories import Producer, Role

MISSING_LAUNCH_TOLERANCE = 0.02
"""Launches cut off by the edges of a recording; all handed and collected real traces stay at 0."""
HOLE_SHARE = 0.5
"""One gap this long (of the window) means that the window joins separate stretches of work. perfkit's
choice.
"""
DOMINANT_SHARE = 0.5
"""One operation with this share of the busy time makes the ratio by itself (TraceLens issue 972)."""
COMMUNICATION_SHARE = 0.5
"""Communication in busy time, part of which is waiting for other ranks. perfkit's choice."""
ROUND_EVENT_CAPS = (1_000_000, 5_000_000)
"""Event limits at which the XLA trace viewer export stops without notice (jax issue 21295)."""
QUEUED_SHARE = 0.5
"""Idle time with work already queued beyond which the host cannot be blamed for most of it."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What the guards look at: one device of one trace, and the thresholds of the verdict."""

    trace: TraceAnalysis
    device: DeviceAnalysis | None
    thresholds: Thresholds

    @property
    def ratio(self) -> float | None:
        """The primary ratio: device-op time over the device window."""
        return self.device.busy.device_window.device_op_ratio if self.device else None


def replays(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    check = facts.device.replays
    if not check.launches:
        return Outcome(False, "0 graph launches")
    if not check.uncovered:
        return Outcome(
            False, f"{check.launches} graph launches, all with operations ({check.graph_ops:,}) under them"
        )
    low, high = check.low_ratio, check.high_ratio
    bounds = (
        f"the true ratio lies between {pct(low)} and {pct(high)}"
        if low is not None and high is not None
        else ""
    )
    message = (
        f"{check.uncovered} of {check.launches} graph launches have no device operation under them: {bounds}"
    )
    rests_on_it = high is None or word_of(high, facts.thresholds) != word_of(low or 0.0, facts.thresholds)
    return Outcome(True, message, None if rests_on_it else Effect.NOTE)


def short_replays(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or not facts.device.replays.graph_ops:
        return None
    short, launches = facts.device.replays.short_replays, facts.device.replays.launches
    if short:
        return Outcome(
            True, f"{short} of {launches} replays recorded fewer operations than others of their graph"
        )
    return Outcome(False, f"{launches} replays, none shorter than its kind")


def unrecorded_launches(facts: TraceFacts) -> Outcome | None:
    cover = facts.trace.coverage
    if facts.trace.busy_only or not cover.launches:
        return None
    share = cover.without_operations / cover.launches
    message = (
        f"{cover.without_operations:,} of {cover.launches:,} kernel launches have no operation on any device"
    )
    return Outcome(share > MISSING_LAUNCH_TOLERANCE, message)


def no_device_activity(facts: TraceFacts) -> Outcome | None:
    if facts.device is not None:
        return Outcome(False, f"{facts.device.busy.events:,} device operations")
    return Outcome(True, why_no_device_activity(facts.trace))


def why_no_device_activity(trace: TraceAnalysis) -> str:
    """Why a trace has no device operation, as far as its content says."""
    events = sum(row.events for row in trace.inventory)
    if not events:
        return "the event array is empty: the profiler recorded nothing"
    others = [row for row in trace.inventory if row.role in (Role.OTHER_DEVICE, Role.UNKNOWN_DEVICE)]
    seen = ", ".join(f"{row.events:,} {row.category}" for row in others[:3])
    calls = sum(row.events for row in trace.inventory if row.role == Role.RUNTIME and row.phase == "X")
    if trace.meta.producer == Producer.MTIA:
        return (
            f"a Meta MTIA trace ({seen}): its device lane mixes work with waits, and perfkit does not read it"
        )
    if trace.meta.producer == Producer.ASCEND:
        return (
            "a Huawei Ascend NPU trace: its device lanes are not read by perfkit; msprof-analyze reads them"
        )
    if calls:
        return (
            f"{calls:,} runtime calls but no device operation: device activity was not recorded "
            "(CUPTI or roctracer missing, or a second profiler session)"
        )
    if seen:
        return f"no known device category, only {seen}"
    return f"{events:,} events, all of the host: a CPU-only run, or device activities were not asked for"


def windows_disagree(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.ratio is None or facts.device.busy.steps_window is None:
        return None
    by_steps = facts.device.busy.steps_window.device_op_ratio
    if by_steps is None:
        return None
    message = f"{pct(facts.ratio)} of the device window, {pct(by_steps)} of the profiled steps"
    return Outcome(word_of(facts.ratio, facts.thresholds) != word_of(by_steps, facts.thresholds), message)


def few_samples(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    steps = len(facts.device.steps.steps) if facts.device.steps else 0
    operations = facts.device.busy.events
    known = f"{steps} step{'s' if steps != 1 else ''}" if facts.device.steps else "steps not counted"
    few = steps < TRACE_MIN_STEPS and operations < TRACE_MIN_OPERATIONS
    advice = f": capture {TRACE_MIN_STEPS} steady steps or more" if few else ""
    return Outcome(few, f"{known}, {operations:,} operations{advice}")


def damage(facts: TraceFacts) -> Outcome | None:
    losses = facts.trace.losses
    if not losses:
        return Outcome(False, "the file was read whole")
    lost_bytes = sum(loss.lost_bytes for loss in losses)
    what = "; ".join(f"{loss.what}{_where(loss.offset)}" for loss in losses[:3])
    hides = any(loss.may_hide_device_work for loss in losses)
    message = f"{what} ({lost_bytes:,} bytes lost)" + ("; device work may be missing" if hides else "")
    return Outcome(True, message, None if hides else Effect.NOTE)


def _where(offset: int) -> str:
    return f" at byte {offset:,}" if offset >= 0 else ""


def zero_timestamps(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    zero, events = facts.device.busy.zero_timestamps, facts.device.busy.events
    return Outcome(zero > 0, f"{zero:,} operations beside {events:,} have timestamp 0")


def dominance(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.device.busy.events < 2:
        return None
    busy = facts.device.busy
    busy_ns = busy.device_window.device_op_ns
    if not busy_ns:
        return None
    share = busy.longest_op_ns / busy_ns
    name = busy.longest_op_name[:60]
    return Outcome(share > DOMINANT_SHARE, f"the longest operation is {pct(share)} of all busy time ({name})")


def hole(facts: TraceFacts) -> Outcome | None:
    device = facts.device
    if device is None or device.idle is None or not device.idle.largest:
        return None
    window_ns = device.busy.device_window.window.length_ns
    gap = device.idle.largest[0]
    gap_ns = gap.end_ns - gap.start_ns
    rest_ns = window_ns - gap_ns
    share = gap_ns / window_ns if window_ns else 0.0
    without = (
        f"; without it the ratio is {pct(device.busy.device_window.device_op_ns / rest_ns)}"
        if rest_ns
        else ""
    )
    message = f"the longest gap is {pct(share)} of the device window ({gap_ns / 1e6:,.3f} ms){without}"
    return Outcome(share > HOLE_SHARE, message)


def unknown_categories(facts: TraceFacts) -> Outcome | None:
    unknown = [row for row in facts.trace.inventory if row.role == Role.UNKNOWN_DEVICE]
    if not unknown:
        return (
            None if facts.trace.busy_only else Outcome(False, "every category that names a device is known")
        )
    seen = ", ".join(f"{row.events:,} {row.category[:40]}" for row in unknown[:5])
    return Outcome(True, f"categories that name a device and are not counted: {seen}")


def graph_capture(facts: TraceFacts) -> Outcome | None:
    cover = facts.trace.coverage
    if not cover.captured:
        return None
    message = f"{cover.captured:,} launches went into a graph being captured, {cover.launches:,} ran"
    return Outcome(True, message, None if cover.captured > cover.launches else Effect.NOTE)


def communication(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.device.overlap is None:
        return None
    busy_ns = facts.device.busy.device_window.device_op_ns
    share = facts.device.overlap.communication_ns / busy_ns if busy_ns else 0.0
    message = f"communication kernels are {pct(share)} of busy time; waiting for other ranks is part of them"
    return Outcome(share > COMMUNICATION_SHARE, message)


def host_missing(facts: TraceFacts) -> Outcome | None:
    if facts.trace.busy_only or facts.device is None or facts.device.launches is None:
        return None
    tied, events = facts.device.launches.correlated_ops, facts.device.busy.events
    message = f"{tied:,} of {events:,} operations have their launch call in the trace"
    return Outcome(tied == 0, message)


def event_cap(facts: TraceFacts) -> Outcome | None:
    events = sum(row.events for row in facts.trace.inventory if row.phase == "X")
    if facts.trace.busy_only:
        return None
    return Outcome(events in ROUND_EVENT_CAPS, f"{events:,} complete events")


def over_reading(facts: TraceFacts) -> Outcome | None:
    if facts.ratio is None or word_of(facts.ratio, facts.thresholds) is not Word.DEVICE_BOUND:
        return None
    return Outcome(
        True, "device-op time counts any resident kernel; SM active and tensor active: not measured"
    )


def idle_while_queued(facts: TraceFacts) -> Outcome | None:
    device = facts.device
    if device is None or device.idle is None or not device.idle.idle_ns or facts.ratio is None:
        return None
    share = device.idle.by_cause_ns[Cause.QUEUED] / device.idle.idle_ns
    depth = device.launches.queue_depth_p50 if device.launches else None
    queue = f"; median queue at a launch: {depth:,.0f} operations" if depth is not None else ""
    fired = share > QUEUED_SHARE and word_of(facts.ratio, facts.thresholds) is Word.HOST_BOUND
    return Outcome(fired, f"{pct(share)} of the idle time passed with work already queued{queue}")
