"""Why an nsys export holds no device operation. A missing table is not a busy ratio of 0 %."""

from __future__ import annotations

from layers.evidence.wording import counted, first_few, pct
from layers.layer1_gpu_busy.nsys_facts import NsysFacts
from parsers.nsys_model import Trouble
from parsers.series_model import Metric

LOSSES = (Trouble.SOME_CUDA, Trouble.CUDA_START, Trouble.CUPTI_LOST, Trouble.NO_CUDA)
"""What nsys says when CUDA events are missing, or may be."""


NAMED = {
    Metric.SM_ACTIVE_RATIO: "SM active",
    Metric.GR_ACTIVE_RATIO: "GR active",
    Metric.TENSOR_ACTIVE_RATIO: "tensor active",
}


def why_no_cuda(nsys: NsysFacts, calls: int) -> str:
    """The reason, as far as the export tells, and what it holds instead; `calls` counts its calls into
    CUDA."""
    sampled = [
        f"{NAMED[count.metric]} of GPU {count.gpu} {pct(count.mean)} (n = {counted(count.usable, 'sample')})"
        for count in nsys.metric_counts
        if count.mean is not None
    ]
    beside = f"; its GPU metrics tell of no operation: {first_few(sampled)}" if sampled else ""
    return _why(nsys, calls) + beside


def _why(nsys: NsysFacts, calls: int) -> str:
    said = [trouble for trouble in nsys.capture.troubles if trouble in LOSSES]
    reported = f" ({'; '.join(said)})" if said else ""
    if nsys.capture.tables_chosen:
        return "the export was made of chosen tables, and none of them holds device work: export them all"
    if calls:
        what = f"{counted(calls, 'CUDA call')} and no device operation"
        return f"{what}: device activity was not recorded{reported}"
    if nsys.capture.cuda_traced is False:
        return "CUDA was not traced: record with --trace=cuda,nvtx,osrt"
    if nsys.capture.cuda_traced:
        return f"CUDA was traced, and no process that nsys could follow used it{reported}"
    return "no device operation, and the export does not say whether CUDA was traced"
