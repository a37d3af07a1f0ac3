"""The guards of Layer 1 on what a trace can be trusted with: is it one device on one clock, and does its
ratio stand for the service?

Each entry stands beside the function that looks for its trap. Facts are those of `guard_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.clocks import CLOCK_TOLERANCE, SHORT_WAITS, WAIT_TOLERANCE_NS
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards_torn import TORN_GUARDS
from layers.layer1_gpu_busy.guards_units import UNIT_GUARDS
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import PREFILLING, Step, StepTime
from layers.layer1_gpu_busy.runtime_calls import SHARED_TOLERANCE
from layers.layer1_gpu_busy.thresholds import Word, word_of
from parsers.trace_model import NO_STREAM

STREAM_OVERLAP = 1.5
"""Times that the operations of one stream may cover the same moment, on average. A stream runs one after the
other; programmatic dependent launches overlap by microseconds, and parallel nodes of one graph by more. All
real traces at hand stay at 1.00. perfkit's choice."""
NOTHING_SHARE = 0.5
"""Idle time without any submission beyond which the host cannot be told from a service without requests."""
SMALL_SHARE = 0.1
"""Share of all step time below which a shape cannot move the ratio much. perfkit's choice."""
BIG_SHARE = 0.25
"""Share of all step time from which a shape counts with fewer steps too: the ratio rests on it. perfkit's
choice.
"""
WAIT_SHARE = 0.5
"""Idle time in waits for the device beyond which something is missing: a wait ends when the device is done.
perfkit's choice; real traces stay below 0.01."""
CUT_PER_GAP_NS = 2_000
"""A start and a duration, each cut to whole microseconds, make the gap behind them up to this much longer."""
SHAPES_SHOWN = 3
"""Shapes that a message names."""


def _merged_devices(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or not facts.device.busy.processes:
        return None
    busy = facts.device.busy
    calls = facts.device.launches.shared_ids if facts.device.launches else 0
    several = busy.processes > 1 or busy.shared_ids > SHARED_TOLERANCE * busy.ids
    said = [f"device {busy.device} is filed under {counted(busy.processes, 'process id')}"]
    if busy.shared_ids:
        said.append(f"{busy.shared_ids:,} of its {counted(busy.ids, 'correlation id')} name several launches")
    if calls:
        said.append(f"launch calls that do not belong together share {counted(calls, 'correlation id')}")
    apart = not several and len(facts.trace.devices) > 1
    return Outcome(several or calls > 0, "; ".join(said), Effect.DIRECTIONAL if apart else None)


MERGED_DEVICES = Guard(
    code="PK139",
    name="merged-devices",
    layer="layer1",
    effect=Effect.VOID,
    sees="One device in a file that holds several ranks.",
    cause="Traces of several processes were merged into one file, and each called its GPU by the same "
    "number. Their busy times then cover each other.",
    detection="The operations of one device number come under several process ids; a profiler uses one for "
    f"each device. Or more than {limit(SHARED_TOLERANCE)} of the correlation ids name several launches: "
    "calls of several processes or threads, or one after the other; kernels of one name, or with others of "
    "their stream between them, that no graph launch explains; several kernels or copies under one plain "
    "launch call, which makes one. Each process numbers its own. (A hint where "
    "calls alone say so and the file has several devices: ratios stand, launches may be mixed up.)",
    remedy="Give the files of the ranks as they were recorded: perfkit layer1 --trace rank*.json.gz.",
    source="SGLang and Megatron merge traces of all ranks into one file; CUDA numbers devices by process, "
    "and in containers ranks may have one process id.",
    check=_merged_devices,
)


def _stream_overlap(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    rows = [row for row in facts.device.busy.streams if row.busy_ns and row.stream != NO_STREAM]
    if not rows:
        return None
    overlap = sum(row.sum_ns for row in rows) / sum(row.busy_ns for row in rows)
    message = f"the operations of each stream last {overlap:,.2f} times the time that they cover"
    return Outcome(overlap > STREAM_OVERLAP, message, Effect.NOTE if facts.word is Word.HOST_BOUND else None)


STREAM_RUNS_SEVERAL = Guard(
    code="PK136",
    name="stream-runs-several",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A stream that runs several operations at the same time.",
    cause="A stream runs one operation after the other. Durations that reach over the next operations were "
    "not measured: a counter that overflowed, an end that was never seen.",
    detection=f"The durations of one stream sum to more than {STREAM_OVERLAP} times the time that they "
    "cover.",
    remedy="Look at the longest operations of that stream in a viewer; record again with another profiler "
    "version. The ratio is an upper bound.",
    source="rocprofiler-sdk kernel times that swallow their successors; TraceLens issue 972.",
    check=_stream_overlap,
)


def _clocks(facts: TraceFacts) -> Outcome | None:
    launches = facts.device.launches if facts.device is not None else None
    clocks = launches.clocks if launches is not None else None
    if clocks is None or clocks.early_share is None:
        return None
    what = f"{pct(clocks.early_share)} of the operations began before their call"
    if clocks.waits:
        what += f", {clocks.short_waits:,} of {counted(clocks.waits, 'wait')} returned before what it was for"
    withheld = "" if clocks.agree else ": launch delays and causes of idle time are not measured"
    return Outcome(not clocks.agree, what + withheld)


CLOCKS_DISAGREE = Guard(
    code="PK137",
    name="clocks-disagree",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Operations that run before anybody launched them, or after the host has waited for them.",
    cause="Times of host and device come from two clocks, and the profiler did not bring them together.",
    detection=f"More than {limit(CLOCK_TOLERANCE)} of the operations with a launch call began before it. Or "
    f"{limit(SHORT_WAITS)} or more of the waits returned over {WAIT_TOLERANCE_NS // 1000} µs before what "
    "they waited for had ended: waits for the whole device, and for a stream right after a copy to the host.",
    remedy="The busy ratio needs one clock only and stands. For launch delays and causes of idle time, "
    "record again, or with nsys.",
    source="kineto issues on clock conversion (CUPTI timestamps before the call); perfkit: two clocks are "
    "never compared without a check.",
    check=_clocks,
)


def _idle_share(facts: TraceFacts, cause: Cause) -> float | None:
    """A cause's share of the idle time of a host-bound device; None for any other."""
    idle = facts.device.idle if facts.device is not None else None
    if idle is None or not idle.idle_ns or facts.word is not Word.HOST_BOUND:
        return None
    return idle.by_cause_ns[cause] / idle.idle_ns


def _nothing_submitted(facts: TraceFacts) -> Outcome | None:
    share = _idle_share(facts, Cause.NOTHING_SUBMITTED)
    if share is None:
        return None
    message = f"in {pct(share)} of the idle time the launching thread recorded nothing at all"
    return Outcome(share > NOTHING_SHARE, message)


NOTHING_WAS_SUBMITTED = Guard(
    code="PK138",
    name="nothing-was-submitted",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A low busy ratio while the host does nothing that was recorded.",
    cause="There was no request to work on, or the host ran code that the trace does not hold (Python "
    "without stacks). A service without load is idle and not host-bound.",
    detection=f"A host-bound ratio, and in more than {limit(NOTHING_SHARE)} of the idle time no call, "
    "operator or frame of the thread that launched next.",
    remedy="Check that there was load during the recording; record with with_stack=True to see what the "
    "thread did.",
    source="SGLang-Omni methodology: many a slow service is a question of capacity; look at the queue first.",
    check=_nothing_submitted,
)


def _recording_idle(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or facts.ratio is None or facts.device.busy.recorded_window is None:
        return None
    recorded = facts.device.busy.recorded_window.device_op_ratio
    if recorded is None:
        return None
    words = {facts.word, word_of(recorded, facts.thresholds)}
    steps = facts.device.busy.steps_window
    by_steps = steps.device_op_ratio if steps is not None else None
    agreed = by_steps is not None and word_of(by_steps, facts.thresholds) is facts.word
    message = f"{pct(facts.ratio)} of the device window, {pct(recorded)} of all that was recorded"
    return Outcome(words == {Word.HOST_BOUND, Word.DEVICE_BOUND} and not agreed, message)


BUSY_STRETCH_OF_AN_IDLE_RECORDING = Guard(
    code="PK128",
    name="busy-stretch-of-an-idle-recording",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A device that is busy all the time, in a recording most of which has no device work.",
    cause="The window of the ratio runs from the first to the last device activity. What the host did "
    "before and after is outside: the profiler's start and stop, or the reason why the service is slow.",
    detection="Device-bound by the device window and host-bound by all that was recorded, without profiled "
    "steps that say the same as the device window.",
    remedy="Record a longer stretch under steady load, so that device work fills the recording.",
    source="A two-step vLLM decode trace in the TraceLens collection: 99.8 % of its own window, 56.1 % of "
    "the recording.",
    check=_recording_idle,
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The steps of one kind and batch size."""

    name: str
    steps: int
    ratio: float


def _shapes(facts: TraceFacts) -> Iterator[_Shape]:
    """Shapes with enough steps to speak of, or that the ratio rests on: busy time over the time from a
    step's start to the next one's.
    """
    device = facts.device
    if device is None or device.steps is None or not device.step_times:
        return
    by_shape: dict[str, list[StepTime]] = {}
    for step, time in zip(device.steps.steps, device.step_times, strict=True):
        if step.operations:
            by_shape.setdefault(_shape_name(step), []).append(time)
    whole_ns = sum(_length_ns(time) for times_of in by_shape.values() for time in times_of)
    for name, times_of in sorted(by_shape.items()):
        length_ns = sum(map(_length_ns, times_of))
        enough = TRACE_MIN_STEPS if length_ns < BIG_SHARE * whole_ns else 1
        if length_ns > SMALL_SHARE * whole_ns and len(times_of) >= enough:
            yield _Shape(name, len(times_of), sum(t.busy_ns for t in times_of) / length_ns)


def _length_ns(time: StepTime) -> int:
    return time.busy_ns + time.idle_ns + (time.idle_after_ns or 0)


def _shape_name(step: Step) -> str:
    """Kind and size to a factor of two (continuous batching hardly repeats one): tokens where a prompt is
    computed, else the batch.
    """
    prefilling = step.kind in PREFILLING and step.tokens
    size = step.tokens if prefilling else step.batch_size
    if size is None or size < 1:
        return step.kind
    low = 1 << (size.bit_length() - 1)
    span = f"{low:,} to {2 * low - 1:,}" if low > 1 else "1"
    return f"{step.kind} of {span} tokens" if prefilling else f"{step.kind} at batch {span}"


def _shapes_differ(facts: TraceFacts) -> Outcome | None:
    shapes = list(_shapes(facts))
    if len(shapes) < 2:
        return None
    words = {word_of(shape.ratio, facts.thresholds) for shape in shapes}
    ends = sorted(shapes, key=lambda shape: shape.ratio)
    shown = ends if len(ends) <= SHAPES_SHOWN else [ends[0], ends[-1]]
    message = ", ".join(f"{s.name} {pct(s.ratio)} ({counted(s.steps, 'step')})" for s in shown)
    return Outcome({Word.HOST_BOUND, Word.DEVICE_BOUND} <= words, f"busy by shape of step: {message}")


SHAPES_DIFFER = Guard(
    code="PK190",
    name="shapes-differ",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="One busy ratio over steps that are two different workloads.",
    cause="Prefill fills the device and decode leaves it idle, or small batches and large ones. Their mean "
    "describes neither.",
    detection="Annotated steps of one kind and batch size (to a factor of two) are host-bound and those of "
    f"another device-bound, with {TRACE_MIN_STEPS} steps each or {limit(BIG_SHARE)} of the time.",
    remedy="Judge each shape by itself: record them apart.",
    source="perfkit: per workload shape, never averaged over shapes.",
    check=_shapes_differ,
)


def _waited_for_nothing(facts: TraceFacts) -> Outcome | None:
    syncs, copies = _idle_share(facts, Cause.SYNC), _idle_share(facts, Cause.COPY)
    if syncs is None or copies is None or facts.device is None:
        return None
    share = syncs + (copies if facts.device.replays.launches else 0.0)
    return Outcome(share > WAIT_SHARE, f"in {pct(share)} of the idle time the host waited for the device")


WAITED_FOR_NOTHING = Guard(
    code="PK191",
    name="waited-for-nothing",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A host that waits for a device on which nothing runs.",
    cause="A wait for the device returns when its work is done. If it lasts long after the last recorded "
    "operation, work was not recorded (nodes of graph replays), or it waited for another device, an event "
    "or a host function.",
    detection=f"A host-bound ratio, and more than {limit(WAIT_SHARE)} of the idle time lies in synchronising "
    "calls.",
    remedy="Record all devices and processes; compare the operations of one replay with the graph's nodes; "
    "measure without a tracer: perfkit layer1 --live, --dcgm or --smi.",
    source="ROCm profilers that drop dispatches of replays (sglang PR 35390, rocm-systems PR 4361).",
    check=_waited_for_nothing,
)


def _whole_microseconds(facts: TraceFacts) -> Outcome | None:
    device = facts.device
    if device is None or device.idle is None or facts.ratio is None or facts.trace.nsys is not None:
        return None
    if facts.trace.meta.nanosecond_resolution:
        return Outcome(False, "times are finer than a microsecond")
    rounded_ns = min(device.idle.idle_ns, device.idle.gaps * CUT_PER_GAP_NS)
    high = facts.ratio + rounded_ns / device.busy.device_window.window.length_ns
    lost = f"{counted(device.idle.gaps, 'gap')} may be up to {CUT_PER_GAP_NS / 1000:.0f} µs too long each"
    message = (
        f"times are whole microseconds: {lost}, so the ratio lies between {pct(facts.ratio)} and {pct(high)}"
    )
    return Outcome(word_of(high, facts.thresholds) is not facts.word, message)


WHOLE_MICROSECONDS = Guard(
    code="PK192",
    name="whole-microseconds",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Short kernels in a trace of whole microseconds.",
    cause="Older profilers cut starts and durations down to whole microseconds. Kernels of a few "
    "microseconds lose much of their length, and gaps appear that were not there.",
    detection=f"No time in the file is finer than a microsecond, and with {CUT_PER_GAP_NS / 1000:.0f} µs "
    "more per gap the ratio passes a threshold.",
    remedy="Record with PyTorch 2.4 or newer (nanoseconds), or with nsys.",
    source="kineto issue 853 (both times are cut, so a gap may grow by nearly 2 µs).",
    check=_whole_microseconds,
)


def _torn_pairs(facts: TraceFacts) -> Outcome | None:
    cover = facts.trace.coverage
    if facts.trace.busy_only or facts.device is None or not cover.launches:
        return None
    calls, operations = cover.without_operations - cover.at_the_end, cover.operations_without_launch
    message = (
        f"{calls:,} of {counted(cover.launches, 'kernel launch')} without an operation and "
        f"{counted(operations, 'operation')} without a launch, all between others that have theirs"
    )
    return Outcome(calls + operations > 0, message, Effect.NOTE if facts.word is Word.DEVICE_BOUND else None)


TORN_PAIRS = Guard(
    code="PK193",
    name="torn-pairs",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A trace in which nearly every launch has its operation, and a few have not.",
    cause="A stretch of the file is gone and what is left is valid JSON, or the profiler dropped records. "
    "Of what went with call and operation nothing tells how much it was.",
    detection="A kernel launch call before the last ones without an operation of its id; or an operation "
    "with an id between those of recorded calls and no call, where others of its name have theirs. (A note "
    "where the ratio is device-bound: what is missing could only add to it.)",
    remedy="Compare size and checksum of the file with the original, or record again.",
    source="perfkit: in none of the real traces at hand is there one; of stretches cut out of real traces so "
    "that valid JSON remains, it shows about half.",
    check=_torn_pairs,
)

DOUBT_GUARDS: tuple[Guard[TraceFacts], ...] = (
    BUSY_STRETCH_OF_AN_IDLE_RECORDING,
    STREAM_RUNS_SEVERAL,
    CLOCKS_DISAGREE,
    NOTHING_WAS_SUBMITTED,
    MERGED_DEVICES,
    SHAPES_DIFFER,
    WAITED_FOR_NOTHING,
    WHOLE_MICROSECONDS,
    TORN_PAIRS,
    *TORN_GUARDS,
    *UNIT_GUARDS,
)
