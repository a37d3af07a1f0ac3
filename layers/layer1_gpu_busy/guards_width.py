"""The guards of Layer 1 on how full the chip was while it was busy, by GPU metrics of an nsys export or by a
sampler beside a trace.

A device that is busy all the time with work for a few SMs is no full device: what the sampled judge leaves
undecided must not be strong because a trace says it.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.nsys_metrics import LONGEST_PERIODS
from layers.layer1_gpu_busy.reading_coverage import LOST_SHARE, TOO_LITTLE_KNOWN
from layers.layer1_gpu_busy.sampled_word import SM_EFFECTIVE, SM_INEFFECTIVE
from layers.layer1_gpu_busy.sm_active import SmActive
from layers.layer1_gpu_busy.thresholds import Word
from parsers.series_model import Metric

EXPORT_SOURCE = "GPU metrics"


def sm_active_of(facts: TraceFacts) -> SmActive | None:
    """What the export itself says of the device's SMs, else what a sampler beside it says."""
    nsys, device = facts.trace.nsys, facts.device
    means = nsys.metrics_of(device.busy.device) if nsys is not None and device is not None else {}
    mean = means.get(Metric.SM_ACTIVE_RATIO)
    return SmActive(mean.mean, mean.n, EXPORT_SOURCE) if mean is not None else facts.sampled_sm


def _idle_sms(facts: TraceFacts) -> Outcome | None:
    sm = sm_active_of(facts)
    if sm is None or facts.ratio is None:
        return None
    message = f"device busy {pct(facts.ratio)}, SM active {pct(sm.share)} ({sm.source}, n = {sm.n:,})"
    sure = sm.share < SM_INEFFECTIVE and sm.n >= SERIES_MIN_SAMPLES
    fired = facts.word is Word.DEVICE_BOUND and sm.share < SM_EFFECTIVE
    return Outcome(fired, message, None if sure else Effect.NOTE)


def _few_metrics(facts: TraceFacts) -> Outcome | None:
    nsys, device = facts.trace.nsys, facts.device
    if nsys is None or device is None or not (nsys.metric_rows or nsys.metric_counts):
        return None
    number = device.busy.device
    mean = nsys.sampled_of(number).get(Metric.SM_ACTIVE_RATIO)
    n = mean.n if mean is not None else 0
    said = f"{counted(n, 'sample')} of SM active in the window of device {number}"
    if n >= SERIES_MIN_SAMPLES:
        return Outcome(False, said)
    of_sm = [count for count in nsys.metric_counts if count.metric is Metric.SM_ACTIVE_RATIO]
    why = [
        f"GPU {count.gpu}{'' if count.device == number else ', not known to be this device'}: "
        f"{count.usable:,} usable, {count.missing:,} without a value, {count.out_of_range:,} impossible"
        for count in of_sm
    ] or [f"{counted(nsys.metric_rows, 'row')} of GPU metrics, none named SM active"]
    return Outcome(True, f"{said} ({'; '.join(why)})")


def _partly_sampled(facts: TraceFacts) -> Outcome | None:
    nsys, device = facts.trace.nsys, facts.device
    means = nsys.sampled_of(device.busy.device).values() if nsys is not None and device is not None else ()
    if not means:
        return None
    partial = [mean.known for mean in means if mean.known.partial]
    if not partial:
        return Outcome(False, "each of the readings of GPU metrics has a value, and there are no holes")
    said = [known.text + (": left out" if known.too_little else "") for known in partial]
    doubt = facts.word is Word.DEVICE_BOUND and any(known.doubtful for known in partial)
    return Outcome(True, "; ".join(said), Effect.DIRECTIONAL if doubt else Effect.NOTE)


BUSY_WITH_IDLE_SMS = Guard(
    code="PK166",
    name="busy-with-idle-sms",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A device busy all the time, most of whose multiprocessors had no work.",
    cause="Device-op time counts any resident kernel. Small kernels one after the other keep a device busy "
    "and its chip empty: faster kernels are then not what it lacks.",
    detection=f"A device-bound ratio with SM active below {limit(SM_INEFFECTIVE)} over {SERIES_MIN_SAMPLES} "
    f"samples or more of the same time; a note up to {limit(SM_EFFECTIVE)}, or of fewer samples.",
    remedy="Larger batches, or fewer and larger kernels, before kernels are tuned.",
    source="NVIDIA DCGM user guide, SM activity: 0.8 is necessary for effective use, less than 0.5 likely "
    "ineffective.",
    check=_idle_sms,
)

FEW_GPU_METRICS = Guard(
    code="PK167",
    name="few-gpu-metrics",
    layer="layer1",
    effect=Effect.NOTE,
    sees="An export with GPU metrics, and nothing of them in the result, or a mean of two samples.",
    cause="The samples are of another GPU, lie outside the device window, have no value or an impossible "
    "one, or bear names that perfkit does not know.",
    detection=f"GPU metrics in the export, and fewer than {SERIES_MIN_SAMPLES} samples of SM active in the "
    "device window.",
    remedy="Record with --gpu-metrics-devices=cuda-visible under load, for a second or more; nsys 2025.1 "
    "and newer say which GPU a device is.",
    source="nsys user guide, GPU metrics: typeId holds nsys's own number of the GPU, no CUDA ordinal.",
    check=_few_metrics,
)

GPU_METRICS_WITHOUT_VALUE = Guard(
    code="PK183",
    name="gpu-metrics-without-value",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="SM active as the mean of some of its readings.",
    cause="Readings are NULL or cannot be (above 100 %, below 0), or a buffer overflowed and left a hole. "
    "Device-op time is not touched; how full the busy device was is half known.",
    detection=f"More than {limit(LOST_SHARE)} of the readings of a metric without a value, or of the device "
    f"window more than {LONGEST_PERIODS} periods from one, under a device-bound ratio; a note otherwise. "
    f"A metric of which less than {limit(TOO_LITTLE_KNOWN)} is known is left out.",
    remedy="Record again with a lower --gpu-metrics-frequency, or for a shorter time.",
    source="nsys user guide, GPU metrics; kineto PR 330 (negative values).",
    check=_partly_sampled,
)

WIDTH_GUARDS: tuple[Guard[TraceFacts], ...] = (
    BUSY_WITH_IDLE_SMS,
    FEW_GPU_METRICS,
    GPU_METRICS_WITHOUT_VALUE,
)
