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
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.model import Cause, Step, StepTime
from layers.layer1_gpu_busy.runtime_calls import CLOCK_TOLERANCE
from layers.layer1_gpu_busy.thresholds import Word, word_of
from parsers.chrome_model import NO_STREAM

STREAM_OVERLAP = 1.5
"""Times that the operations of one stream may cover the same moment, on average. A stream runs one after the
other; programmatic dependent launches overlap by microseconds, and parallel nodes of one graph by more. All
real traces at hand stay at 1.00. perfkit's choice."""
NOTHING_SHARE = 0.5
"""Idle time without any submission beyond which the host cannot be told from a service without requests."""
SHAPES_SHOWN = 3
"""Shapes that a message names."""


def _merged_devices(facts: TraceFacts) -> Outcome | None:
    if facts.device is None or not facts.device.busy.processes:
        return None
    busy = facts.device.busy
    message = f"device {busy.device} is filed under {counted(busy.processes, 'process id')}"
    return Outcome(busy.processes > 1, message)


MERGED_DEVICES = Guard(
    code="PK139",
    name="merged-devices",
    layer="layer1",
    effect=Effect.VOID,
    sees="One device in a file that holds several ranks.",
    cause="Traces of several processes were merged into one file, and each called its GPU by the same "
    "number. "
    "Their busy times then cover each other.",
    detection="The operations of one device number come under several process ids; a profiler uses one "
    "for each device.",
    remedy="Give the files of the ranks as they were recorded: perfkit layer1 --trace rank*.json.gz.",
    source="SGLang and Megatron merge traces of all ranks into one file; CUDA numbers devices by process.",
    check=_merged_devices,
)


def _stream_overlap(facts: TraceFacts) -> Outcome | None:
    if facts.device is None:
        return None
    rows = [row for row in facts.device.busy.streams if row.busy_ns and row.stream != NO_STREAM]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.sum_ns / row.busy_ns)
    overlap = worst.sum_ns / worst.busy_ns
    message = f"the operations of stream {worst.stream} last {overlap:,.2f} times the time that they cover"
    return Outcome(overlap > STREAM_OVERLAP, message, Effect.NOTE if facts.word is Word.HOST_BOUND else None)


STREAM_RUNS_SEVERAL = Guard(
    code="PK136",
    name="stream-runs-several",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A stream that runs several operations at the same time.",
    cause="A stream runs one operation after the other. Durations that reach over the next operations were "
    "not measured: a counter that overflowed, an end that was never seen.",
    detection=f"The durations of one stream sum to more than {STREAM_OVERLAP} times the time that "
    "they cover.",
    remedy="Look at the longest operations of that stream in a viewer; record again with another profiler "
    "version. The ratio is an upper bound.",
    source="rocprofiler-sdk kernel times that swallow their successors; TraceLens issue 972.",
    check=_stream_overlap,
)


def _clocks(facts: TraceFacts) -> Outcome | None:
    launches = facts.device.launches if facts.device is not None else None
    if launches is None or launches.early_share is None:
        return None
    fired = launches.early_share > CLOCK_TOLERANCE
    withheld = ": launch delays and causes of idle time are not measured" if fired else ""
    return Outcome(fired, f"{pct(launches.early_share)} of the operations began before their call{withheld}")


CLOCKS_DISAGREE = Guard(
    code="PK137",
    name="clocks-disagree",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Operations that run before anybody launched them.",
    cause="Times of host and device come from two clocks, and the profiler did not bring them together.",
    detection=f"More than {limit(CLOCK_TOLERANCE)} of the operations with a launch call began before it.",
    remedy="The busy ratio needs one clock only and stands. For launch delays and causes of idle time, "
    "record "
    "again, or with nsys.",
    source="kineto issues on clock conversion (CUPTI timestamps before the call); perfkit: two clocks are "
    "never compared without a check.",
    check=_clocks,
)


def _nothing_submitted(facts: TraceFacts) -> Outcome | None:
    idle = facts.device.idle if facts.device is not None else None
    if idle is None or not idle.idle_ns or facts.word is not Word.HOST_BOUND:
        return None
    share = idle.by_cause_ns[Cause.NOTHING_SUBMITTED] / idle.idle_ns
    message = f"in {pct(share)} of the idle time the launching thread recorded nothing at all"
    return Outcome(share > NOTHING_SHARE, message)


NOTHING_WAS_SUBMITTED = Guard(
    code="PK138",
    name="nothing-was-submitted",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A low busy ratio while the host does nothing that was recorded.",
    cause="There was no request to work on, or the host ran code that the trace does not hold (Python "
    "without "
    "stacks). A service without load is idle and not host-bound.",
    detection=f"A host-bound ratio, and in more than {limit(NOTHING_SHARE)} of the idle time no call, "
    "operator "
    "or frame of the thread that launched next.",
    remedy="Check that there was load during the recording; record with with_stack=True to "
    "see "
    "what the thread did.",
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
    message = f"{pct(facts.ratio)} of the device window, {pct(recorded)} of all that was recorded"
    return Outcome(words == {Word.HOST_BOUND, Word.DEVICE_BOUND}, message)


BUSY_STRETCH_OF_AN_IDLE_RECORDING = Guard(
    code="PK128",
    name="busy-stretch-of-an-idle-recording",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A device that is busy all the time, in a recording most of which has no device work.",
    cause="The window of the ratio runs from the first to the last device activity. What the host did before "
    "and after is outside: the profiler's start and stop, or the reason why the service is slow.",
    detection="Device-bound by the device window and host-bound by all that was recorded.",
    remedy="Record a longer stretch under steady load, so that device work fills the recording.",
    source="A two-step vLLM decode trace in the TraceLens collection: 99.8 % of its own window, 56.1 % of "
    "the "
    "recording.",
    check=_recording_idle,
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The steps of one kind and batch size."""

    name: str
    steps: int
    ratio: float


def _shapes(facts: TraceFacts) -> Iterator[_Shape]:
    """Shapes with enough steps to speak of: busy time over the time from a step's start to the next one's."""
    device = facts.device
    if device is None or device.steps is None or not device.step_times:
        return
    by_shape: dict[str, list[StepTime]] = {}
    for step, time in zip(device.steps.steps, device.step_times, strict=True):
        if step.operations:
            by_shape.setdefault(_shape_name(step), []).append(time)
    for name, times_of in sorted(by_shape.items()):
        busy_ns = sum(t.busy_ns for t in times_of)
        all_ns = sum(t.busy_ns + t.idle_ns + t.idle_after_ns for t in times_of)
        if len(times_of) >= TRACE_MIN_STEPS and all_ns:
            yield _Shape(name, len(times_of), busy_ns / all_ns)


def _shape_name(step: Step) -> str:
    return step.kind if step.batch_size is None else f"{step.kind} at batch {step.batch_size}"


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
    detection=f"Annotated steps of one kind and batch size are host-bound and those of another device-bound, "
    f"with {TRACE_MIN_STEPS} steps or more each.",
    remedy="Judge each shape by itself: record them apart.",
    source="perfkit: per workload shape, never averaged over shapes.",
    check=_shapes_differ,
)

DOUBT_GUARDS: tuple[Guard[TraceFacts], ...] = (
    BUSY_STRETCH_OF_AN_IDLE_RECORDING,
    STREAM_RUNS_SEVERAL,
    CLOCKS_DISAGREE,
    NOTHING_WAS_SUBMITTED,
    MERGED_DEVICES,
    SHAPES_DIFFER,
)
