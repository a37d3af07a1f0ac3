"""What the guards of Layer 1 look for in a trace: one pure function per guard.

Each looks at the facts of one device of one trace (`TraceFacts`; `device` is None where the trace holds no
device operation at all) and answers whether its trap is there, with the numbers that say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import TRACE_MIN_OPERATIONS, TRACE_MIN_STEPS
from layers.evidence.wording import FEW, counted, first_few, pct, time_text
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.kernel_names import short_name
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.nsys_no_cuda import why_no_cuda
from layers.layer1_gpu_busy.runtime_calls import SEEN_SHARE
from layers.layer1_gpu_busy.sm_active import SmActive
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_categories import Producer, Role
from parsers.loss import Loss
from parsers.series_model import Metric
from parsers.trace_model import CategoryCount

MISSING_LAUNCH_TOLERANCE = 0.02
"""Launches cut off by the edges of a recording; all handed and collected real traces stay at 0."""
HOLE_SHARE = 0.5
"""Gaps this long (of the window) mean that the window joins separate stretches of work. perfkit's choice."""
DECIDING_SHARE = 0.1
"""Gaps that are less of the window than this decide a verdict only where it is close. perfkit's choice."""
OUTLYING = 3
"""Times that a gap must pass the next longest one to be no gap of the service's own rhythm. perfkit's
choice.
"""
DOMINANT_SHARE = 0.5
"""One operation with this share of the busy time makes the ratio by itself (TraceLens issue 972)."""
COMMUNICATION_SHARE = 0.5
"""Communication in busy time, part of which is waiting for other ranks. perfkit's choice."""
ROUND_EVENT_CAPS = (1_000_000, 5_000_000)
"""Event limits at which the XLA trace viewer export stops without notice (jax issue 21295)."""
NAME_CHARACTERS = 60
"""Characters of a foreign name that a message quotes."""
QUEUED_SHARE = 0.5
"""Idle time with work already queued beyond which the host cannot be blamed for most of it."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What the guards look at: one device of one trace, and the thresholds of the verdict.

    `sampled_sm` is what a sampler says of its SMs, where one was given.
    """

    trace: TraceAnalysis
    device: DeviceAnalysis | None
    thresholds: Thresholds
    sampled_sm: SmActive | None = None

    @property
    def ratio(self) -> float | None:
        """The primary ratio: device-op time over the device window."""
        return self.device.busy.device_window.device_op_ratio if self.device else None

    @property
    def word(self) -> Word | None:
        """What the primary ratio says by itself."""
        return word_of(self.ratio, self.thresholds) if self.ratio is not None else None


def replays(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    check = facts.device.replays
    launches = counted(check.launches, "graph launch")
    if not check.uncovered:
        return Outcome(False, f"{launches}, {check.graph_ops:,} operations under them")
    what = f"{check.uncovered:,} of {launches} without any device operation under them"
    if check.low_ratio is None or check.high_ratio is None or facts.ratio is None:
        return Outcome(True, what)
    low, high = check.low_ratio, check.high_ratio
    words = {word_of(ratio, facts.thresholds) for ratio in (low, facts.ratio, high)}
    message = f"{what}: the true ratio lies between {pct(low)} and {pct(high)}"
    return Outcome(True, message, Effect.NOTE if len(words) == 1 else None)


def short_replays(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or not facts.device.replays.graph_ops:
        return None
    short, launches = facts.device.replays.short_replays, facts.device.replays.launches
    if not short:
        return Outcome(False, f"{counted(launches, 'replay')}, none a part of another")
    return Outcome(
        True,
        f"{short:,} of {counted(launches, 'replay')} recorded a part of what another one did",
        Effect.NOTE if facts.word is Word.DEVICE_BOUND else None,
    )


def unrecorded_launches(facts: TraceFacts) -> Outcome | None:
    cover = facts.trace.coverage
    if facts.trace.busy_only or not cover.launches:
        return None
    launches = counted(cover.launches, "kernel launch")
    message = f"{cover.without_operations:,} of {launches} without an operation on any device"
    most = MISSING_LAUNCH_TOLERANCE * cover.launches
    if cover.without_operations - cover.at_the_end > most or cover.without_operations <= most:
        return Outcome(cover.without_operations > most, message)
    message += f", {cover.at_the_end:,} of them among the last launches: the device's recording ended first"
    return Outcome(True, message, Effect.NOTE if facts.word is Word.DEVICE_BOUND else Effect.DIRECTIONAL)


def no_device_activity(facts: TraceFacts) -> Outcome | None:
    if facts.device is not None:
        return Outcome(False, counted(facts.device.busy.events, "device operation"))
    if any(loss.rest_is_missing for loss in facts.trace.losses):
        return None
    return Outcome(True, why_no_device_activity(facts.trace))


def why_no_device_activity(trace: TraceAnalysis) -> str:
    """Why a trace has no device operation, as far as its content says."""
    events = sum(row.events for row in trace.inventory)
    seen = _categories(
        [row for row in trace.inventory if row.role in (Role.OTHER_DEVICE, Role.UNKNOWN_DEVICE)]
    )
    if trace.nsys is not None:
        return why_no_cuda(trace.nsys, sum(row.events for row in trace.inventory if row.role == Role.RUNTIME))
    if not events:
        return "the event array is empty: the profiler recorded nothing"
    if trace.meta.producer == Producer.MTIA:
        return (
            f"a Meta MTIA trace ({seen}): its device lane mixes work with waits, and perfkit does not read it"
        )
    if trace.meta.producer == Producer.ASCEND:
        return (
            "a Huawei Ascend NPU trace: its device lanes are not read by perfkit; msprof-analyze reads them"
        )
    if without_time := _complete_events(trace, Role.DEVICE):
        operations = counted(without_time, "device operation")
        dropped = [loss.what for loss in trace.losses if loss.may_hide_device_work and loss.lost_events]
        if dropped:
            return f"{operations}, none of which can be used: {first_few(dropped)}"
        return f"{operations}, and the file does not say when any of them ran"
    if calls := _complete_events(trace, Role.RUNTIME):
        return (
            f"{counted(calls, 'runtime call')} but no device operation: device activity was not recorded "
            "(CUPTI or roctracer missing, or a second profiler session)"
        )
    if seen:
        return f"no known device category, only {seen}"
    return f"{counted(events, 'event')}, all of the host: a CPU-only run, or no device activities asked for"


def _complete_events(trace: TraceAnalysis, role: Role) -> int:
    return sum(row.events for row in trace.inventory if row.role == role and row.phase == "X")


def windows_disagree(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.ratio is None or facts.device.busy.steps_window is None:
        return None
    by_steps = facts.device.busy.steps_window.device_op_ratio
    if by_steps is None:
        return None
    message = f"{pct(facts.ratio)} of the device window, {pct(by_steps)} of the profiled steps"
    drained = facts.device.busy.drained_steps_ratio
    words = [word_of(ratio, facts.thresholds) for ratio in (by_steps, drained) if ratio is not None]
    return Outcome(facts.word not in words, message)


def few_samples(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    found, operations = facts.device.steps, facts.device.busy.events
    steps = len(found.working) if found else 0
    known = found.count if found else "steps not counted"
    few = steps < TRACE_MIN_STEPS and operations < TRACE_MIN_OPERATIONS
    advice = f": capture {TRACE_MIN_STEPS} steady steps or more" if few else ""
    return Outcome(few, f"{known}, {counted(operations, 'operation')}{advice}")


def damage(facts: TraceFacts) -> Outcome | None:
    losses = facts.trace.losses
    if not losses:
        return Outcome(False, "the file was read whole")
    told = [f"{loss.what}{lost_at(loss, packed=facts.trace.packed)}" for loss in losses]
    if cut := [text for text, loss in zip(told, losses, strict=True) if loss.rest_is_missing]:
        read = counted(facts.device.busy.events if facts.device else 0, "device operation")
        message = f"{cut[-1]}: {read} read, and nobody knows how many are missing"
        return Outcome(True, message, Effect.DIRECTIONAL if facts.word is Word.DEVICE_BOUND else None)
    hides = any(loss.may_hide_device_work for loss in losses)
    missing = "; device work may be missing" if hides else ""
    effect = Effect.DIRECTIONAL if hides else Effect.NOTE
    return Outcome(True, f"{first_few(told)} ({amount_lost(losses)}){missing}", effect)


def amount_lost(losses: Sequence[Loss]) -> str:
    """How much, in bytes of text and in events, as far as each is known."""
    sums = {"byte": sum(one.lost_bytes for one in losses), "event": sum(one.lost_events for one in losses)}
    known = " and ".join(counted(n, noun) for noun, n in sums.items() if n) or "nothing"
    if any(one.at_least for one in losses):
        return f"at least {known} lost, nobody knows how much more"
    return f"{known} lost"


def lost_at(loss: Loss, *, packed: bool) -> str:
    """Where it is, after what it is; of a packed file the place is in its unpacked text."""
    unpacked = " of the unpacked text" if packed else ""
    return f" at byte {loss.offset:,}{unpacked}" if loss.offset >= 0 else ""


def zero_timestamps(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    zero, events = facts.device.busy.zero_timestamps, facts.device.busy.events
    lost = facts.trace.untimed_devices
    message = f"{counted(zero, 'operation')} beside {events:,} with timestamp 0"
    others = "".join(f"; device {device}: all {n:,} of them, so nothing is known of it" for device, n in lost)
    return Outcome(zero > 0 or bool(lost), message + others)


def dominance(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.device.busy.events < 2 or not facts.ratio:
        return None
    busy = facts.device.busy
    share = busy.longest_op_ns / busy.device_window.device_op_ns
    name = short_name(busy.longest_op_name)
    return Outcome(share > DOMINANT_SHARE, f"the longest operation, {name}, is {pct(share)} of all busy time")


def hole(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.ratio is None:
        return None
    gaps_ns, window = facts.device.busy.longest_gaps_ns, facts.device.busy.device_window
    if not gaps_ns:
        return Outcome(False, "no gap")
    length_ns, standing_out = window.window.length_ns, _standing_out(gaps_ns)
    left_ns = length_ns - sum(standing_out or gaps_ns[:1])
    without = window.device_op_ns / left_ns if left_ns else 0.0
    longest = f"{pct(gaps_ns[0] / length_ns)} of the device window ({time_text(gaps_ns[0])})"
    it = "the two longest" if len(standing_out) > 1 else "it"
    decides = (
        sum(standing_out) > DECIDING_SHARE * length_ns
        and word_of(without, facts.thresholds) is not facts.word
    )
    fired = gaps_ns[0] / length_ns > HOLE_SHARE or decides
    return Outcome(fired, f"the longest gap is {longest}; without {it} the ratio is {pct(without)}")


def _standing_out(gaps_ns: Sequence[int]) -> Sequence[int]:
    """The longest gap, or the two longest, where they are far longer than the next; `gaps_ns` descends."""
    beyond = [*gaps_ns[1:], 0]
    return next(
        (gaps_ns[:n] for n in (1, 2) if beyond[n - 1 :] and gaps_ns[n - 1] > OUTLYING * beyond[n - 1]), ()
    )


def unknown_categories(facts: TraceFacts) -> Outcome | None:
    unknown = [row for row in facts.trace.inventory if row.role == Role.UNKNOWN_DEVICE]
    if unknown:
        return Outcome(True, f"categories that name a device and are not counted: {_categories(unknown)}")
    if facts.trace.busy_only:
        return None
    return Outcome(False, "every category that names a device is known")


def _categories(rows: Sequence[CategoryCount]) -> str:
    return ", ".join(f"{row.events:,} {row.category[:NAME_CHARACTERS]}" for row in rows[:FEW])


def graph_capture(facts: TraceFacts) -> Outcome | None:
    if facts.trace.busy_only:
        return None
    cover = facts.trace.coverage
    message = f"{counted(cover.captured, 'launch')} into a graph being captured, {cover.launches:,} others"
    return Outcome(cover.captured > 0, message, None if cover.captured > cover.launches else Effect.NOTE)


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
    unseen = tied < SEEN_SHARE * events and facts.device.launches.clocks.agree
    return Outcome(unseen, message, None if facts.word is Word.HOST_BOUND else Effect.NOTE)


def event_cap(facts: TraceFacts) -> Outcome | None:
    if facts.trace.busy_only:
        return None
    events = sum(row.events for row in facts.trace.inventory if row.phase == "X")
    return Outcome(events in ROUND_EVENT_CAPS, counted(events, "complete event"))


def over_reading(facts: TraceFacts) -> Outcome | None:
    if facts.ratio is None:
        return None
    message = f"device-op time counts any resident kernel; {_chip_activity(facts)}"
    return Outcome(facts.word is Word.DEVICE_BOUND, message)


def busy_with_copies(facts: TraceFacts) -> Outcome | None:
    kernels = facts.device.busy.device_window.kernel_ratio if facts.device else None
    if kernels is None or facts.ratio is None:
        return None
    message = f"kernel time {pct(kernels)}, device-op time {pct(facts.ratio)}: the rest is copies and sets"
    few = word_of(kernels, facts.thresholds) is Word.HOST_BOUND
    return Outcome(few and facts.word is Word.DEVICE_BOUND, message)


def _chip_activity(facts: TraceFacts) -> str:
    """SM active and tensor active, where the same file holds them."""
    nsys, device = facts.trace.nsys, facts.device
    means = nsys.metrics_of(device.busy.device) if nsys is not None and device is not None else {}
    named = {"SM active": Metric.SM_ACTIVE_RATIO, "tensor active": Metric.TENSOR_ACTIVE_RATIO}
    shown = [f"{name} {pct(means[m].mean)} (n = {means[m].n:,})" for name, m in named.items() if m in means]
    return ", ".join(shown) or "SM active and tensor active: not measured"


def idle_while_queued(facts: TraceFacts) -> Outcome | None:
    device = facts.device
    if device is None or device.idle is None or not device.idle.idle_ns or facts.ratio is None:
        return None
    share = device.idle.by_cause_ns[Cause.QUEUED] / device.idle.idle_ns
    depth = device.launches.queue_depth_p50 if device.launches else None
    queue = f"; median queue at a launch: {counted(round(depth), 'operation')}" if depth is not None else ""
    fired = share > QUEUED_SHARE and facts.word is Word.HOST_BOUND
    return Outcome(fired, f"{pct(share)} of the idle time passed with work already queued{queue}")


def python_stacks(facts: TraceFacts) -> Outcome | None:
    if facts.trace.busy_only or facts.device is None:
        return None
    frames = _complete_events(facts.trace, Role.PYTHON)
    fired = frames > 0 and facts.word is Word.HOST_BOUND
    return Outcome(fired, f"{counted(frames, 'Python frame')} recorded, each at a cost to the host")


UNCHECKED = "launches without operations, graph captures, shapes of steps, ids that calls share, queues"
"""What a reading of ratios alone cannot look for, and void or undecided may be because of."""


def ratios_alone(facts: TraceFacts) -> Outcome:
    if not facts.trace.busy_only:
        return Outcome(False, "the whole file was decoded")
    unknown_rest = "" if facts.trace.recorded_ns else ", how much of the recording has no device work"
    message = "only device operations, graph launches and step marks were decoded"
    return Outcome(True, f"{message}. Not checked: {UNCHECKED}{unknown_rest}")


def window_without_length(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    operations = counted(facts.device.busy.events, "operation")
    if facts.ratio is None:
        return Outcome(True, f"{operations}, none of any duration, at one moment: the window has no length")
    return Outcome(False, f"{operations} in {time_text(facts.device.busy.device_window.window.length_ns)}")
