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
    mean = nsys.metrics_of(number).get(Metric.SM_ACTIVE_RATIO)
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

WIDTH_GUARDS: tuple[Guard[TraceFacts], ...] = (BUSY_WITH_IDLE_SMS, FEW_GPU_METRICS)
