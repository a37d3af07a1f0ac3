"""Every method that measured a card, with what its number means, on one scale: shares 0..1.

`busy` alone names nothing. A method has a question (was anything resident, how many SMs had work), an
instrument that answers it (activity records, NVML, hardware counters), a scale in its source, an n and a
window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layers.collectors.gpu.emulated_source import NAME as EMULATED_NAME
from layers.layer1_gpu_busy.model import DeviceAnalysis, Window
from layers.layer1_gpu_busy.ranks import UNKNOWN_RANK
from layers.layer1_gpu_busy.runs import ABSOLUTE_FROM_NS
from layers.layer1_gpu_busy.sampled import stats_within
from layers.layer1_gpu_busy.sampled_checks import IDLE_SHARE
from layers.layer1_gpu_busy.sampled_judge import JudgedCard
from layers.layer1_gpu_busy.sampled_model import EntitySamples, MetricStats, SampledAnalysis, Span
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.series_model import Metric

WALL_CLOCK = "wall clock"


class Question(StrEnum):
    """What a method asks."""

    RESIDENT = "was a kernel on the device?"
    SM_ACTIVE = "how many SMs had work?"
    TENSOR_ACTIVE = "how busy were the tensor pipes?"


class Instrument(StrEnum):
    """Who answers. Two methods by one instrument confirm nothing of each other."""

    RECORDS = "activity records of a profiler"
    NVML = "the driver (NVML)"
    COUNTERS = "hardware counters"
    DEVICE = "the device's own counter"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a measured quantity is."""

    measures: str
    question: Question
    instrument: Instrument
    means: str
    scale: str


DEVICE_OP_TIME = Meaning(
    "device-op time",
    Question.RESIDENT,
    Instrument.RECORDS,
    "time with a kernel, copy or set on the device (union)",
    "intervals",
)
SAMPLED = {
    Metric.NVML_UTIL_PCT: Meaning(
        "NVML util",
        Question.RESIDENT,
        Instrument.NVML,
        "time with any kernel on the device; copies do not count",
        "0..100",
    ),
    Metric.GR_ACTIVE_RATIO: Meaning(
        "GR active",
        Question.RESIDENT,
        Instrument.COUNTERS,
        "time that the compute engine had work of any size",
        "0..1",
    ),
    Metric.DEVICE_OP_RATIO: Meaning(
        "device-op time",
        Question.RESIDENT,
        Instrument.DEVICE,
        "time in a kernel or copy, of a device that runs one at a time",
        "0..1",
    ),
    Metric.SM_ACTIVE_RATIO: Meaning(
        "SM active", Question.SM_ACTIVE, Instrument.COUNTERS, "share of SMs with a warp, over time", "0..1"
    ),
    Metric.TENSOR_ACTIVE_RATIO: Meaning(
        "tensor active", Question.TENSOR_ACTIVE, Instrument.COUNTERS, "share of peak tensor cycles", "0..1"
    ),
}


@dataclass(frozen=True, slots=True)
class Method:
    """One number about one card. `low` is the kernel-time ratio of a trace, elsewhere the value itself.

    `card` names the GPU across methods, `device` is its number in the source. `window` is on the wall
    clock, None where that is not known. `samples` are there for measuring again in another window.
    `unseen_launches`: graph launches of a trace without operations. `idle_beside_others`: the card idled
    while another of the same log worked. `taken_for`: by its own name another card, it is taken for this
    one because there is no other.
    """

    method: str
    meaning: Meaning
    source: str
    scope: str
    device: int
    card: str
    n: int
    n_unit: str
    low: float
    value: float
    window: Window | None
    samples: EntitySamples | None = None
    unseen_launches: int = 0
    idle_beside_others: bool = False
    taken_for: str = ""

    @property
    def measures(self) -> str:
        return self.meaning.measures

    @property
    def question(self) -> Question:
        return self.meaning.question

    @property
    def instrument(self) -> Instrument:
        return self.meaning.instrument


def trace_methods(traces: Sequence[TraceAnalysis]) -> Iterator[Method]:
    """One method per device of every trace, and one per GPU metric that was sampled into the same file.

    Ranks that each see one card call it device 0 (CUDA_VISIBLE_DEVICES): a number that several ranks use
    names no card. A file that names no rank (an export of nsys) is not another one.
    """
    ranks_of: dict[int, set[int]] = {}
    for trace in traces:
        for device in trace.devices:
            ranks_of.setdefault(device.busy.device, set()).update({trace.meta.rank} - {UNKNOWN_RANK})
    for trace in traces:
        for device in trace.devices:
            number = device.busy.device
            whose = f" of rank {trace.meta.rank}" if len(ranks_of[number]) > 1 else ""
            emulated = device.busy.device_name == EMULATED_NAME
            traced = _trace_method(trace, device, EMULATED_NAME if emulated else f"gpu {number}{whose}")
            if traced is not None:
                yield traced
                yield from _metrics_beside(traced, trace)


def _trace_method(trace: TraceAnalysis, device: DeviceAnalysis, card: str) -> Method | None:
    ratios = device.busy.device_window
    if ratios.device_op_ratio is None or ratios.kernel_ratio is None:
        return None
    return Method(
        method=trace.method,
        meaning=DEVICE_OP_TIME,
        source=trace.artifact.path,
        scope=f"device {device.busy.device}",
        device=device.busy.device,
        card=card,
        n=device.busy.events,
        n_unit="operations",
        low=ratios.kernel_ratio,
        value=ratios.device_op_ratio,
        window=_wall_clock(trace, device),
        unseen_launches=device.replays.uncovered,
    )


def _metrics_beside(traced: Method, trace: TraceAnalysis) -> Iterator[Method]:
    means = trace.nsys.metrics_of(traced.device) if trace.nsys is not None else {}
    for metric, meaning in SAMPLED.items():
        if metric in means:
            mean = means[metric]
            yield replace(traced, meaning=meaning, n=mean.n, n_unit="samples", low=mean.mean, value=mean.mean)


def _wall_clock(trace: TraceAnalysis, device: DeviceAnalysis) -> Window | None:
    window, zero_ns = device.busy.device_window.window, trace.meta.base_time_ns
    if zero_ns + window.start_ns < ABSOLUTE_FROM_NS:
        return None
    return Window(WALL_CLOCK, zero_ns + window.start_ns, zero_ns + window.end_ns)


def sampled_methods(cards: Iterable[JudgedCard]) -> Iterator[Method]:
    """One method per quantity of every sampled card; those of a card that never did anything are 0."""
    for card in cards:
        entity = card.entity
        if entity is None:
            continue
        stats = entity.active_stats or entity.whole_stats
        for metric, meaning in SAMPLED.items():
            if metric in stats:
                yield _sampled_method(card, card.file, entity, meaning, stats[metric])


def _sampled_method(
    card: JudgedCard, file: SampledAnalysis, entity: EntitySamples, meaning: Meaning, stats: MetricStats
) -> Method:
    span = entity.active or entity.whole
    return Method(
        method=file.method,
        meaning=meaning,
        source=file.artifact.path,
        scope=card.scope,
        device=entity.device,
        card=entity.entity,
        n=stats.n,
        n_unit="samples",
        low=stats.mean_share,
        value=stats.mean_share,
        window=Window(WALL_CLOCK, span.start, span.end) if span and entity.timed else None,
        samples=entity,
        idle_beside_others=card.idle and stats.mean_share <= IDLE_SHARE and len(file.entities) > 1,
    )


def measured_within(method: Method, window: Window) -> Method | None:
    """A sampled method over a part of its time; None where it has no sample there, itself where it has no
    samples to choose from."""
    metric = next((m for m, meaning in SAMPLED.items() if meaning is method.meaning), None)
    if method.samples is None or metric is None or not method.samples.timed:
        return method
    stats = stats_within(method.samples.series, Span(window.start_ns, window.end_ns)).get(metric)
    if stats is None:
        return None
    return replace(method, n=stats.n, low=stats.mean_share, value=stats.mean_share, window=window)


def all_methods(traces: Sequence[TraceAnalysis], cards: Sequence[JudgedCard]) -> list[Method]:
    """Every method of a command, traces first."""
    return [*trace_methods(traces), *sampled_methods(cards)]
