"""What Layer 1 could not measure, and what its results do not show, said plainly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.store_rows import Run
from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.document_entries import Anatomy
from layers.layer1_gpu_busy.findings import PHENOMENON
from layers.layer1_gpu_busy.guard_checks import amount_lost, lost_at
from layers.layer1_gpu_busy.training import OF_TRAINING
from reports.environment import python_frames
from reports.file_names import files_name
from reports.layer1_section import Layer1Run

OTHER_METHODS = (
    "SM active, tensor active and NVML util: no sampled series was given, so how full the device was while "
    "it was busy is unknown, and no second method confirms the ratio"
)

BASELINE_UNKNOWN = (
    "the baseline (packages, driver, clocks, power cap, container limits): no perfkit preflight is recorded, "
    "and a trace holds only what stands under Environment"
)

EXACT = (
    "Each trace is exact for the time that it covers. Whether that time stands for the service under its "
    "usual load is another question, which more captures answer."
)
PHENOMENON_ONLY = (
    f"An idle cause says what the host did meanwhile: {PHENOMENON}. Recording has a cost too, so a service "
    "without a profiler idles less than its trace."
)
STACKS_COST = (
    "They slow the host at every call, so part of the idle time may be the recording itself: capture once "
    "without stacks before concluding."
)
BUSY_IS_NOT_FULL = (
    "A busy device is not an efficient one: the ratio counts an operation whether it fills the device or not."
)
NOTHING_SAID = "A void result says nothing of the service: it is neither an idle GPU nor a busy one."


def not_measured(runs: Sequence[Layer1Run], preflight: Run | None) -> Iterator[str]:
    """One sentence per gap in what was measured, for every run that counts."""
    if preflight is None:
        yield BASELINE_UNKNOWN
    if any(run.document.measured and not run.document.sampled for run in runs):
        yield OTHER_METHODS
    for run in runs:
        for text in dict.fromkeys([*_of_files(run), *_of_devices(run), *_untold(run)]):
            yield f"run {run.run.id}: {text}" if len(runs) > 1 else text


def _of_files(run: Layer1Run) -> Iterator[str]:
    for trace in run.document.traces:
        name = trace.path.rsplit("/", 1)[-1]
        for loss in trace.losses:
            where = lost_at(loss, packed=trace.packed)
            yield f"{name}: {loss.what}{where}; {amount_lost([loss])}"
    ratios_alone = [trace.path for trace in run.document.traces if trace.busy_only]
    if ratios_alone:
        files = files_name(ratios_alone, "trace")
        yield f"{files}: idle time, kernels and steps were not asked for (--busy-only)"
    for device in run.document.traced:
        if device.device_op_ratio is None:
            yield f"{device.scope}: no ratio, since its window has no length"
    if run.void:
        yield f"the busy ratio: {run.run.document['verdict']['because']}"


def _of_devices(run: Layer1Run) -> Iterator[str]:
    """What several devices lack for the same reason stands once."""
    seen: dict[str, list[str]] = {}
    for anatomy in run.document.anatomy:
        for text in _of_anatomy(anatomy):
            seen.setdefault(text, []).append(anatomy.scope)
    for text, scopes in seen.items():
        yield text if len(run.document.traced) == 1 else f"{text} ({_on(scopes)})"


def _on(scopes: Sequence[str]) -> str:
    return scopes[0] if len(scopes) == 1 else f"{scopes[0]} and {len(scopes) - 1} more"


def _of_anatomy(anatomy: Anatomy) -> Iterator[str]:
    if anatomy.steps is None or not anatomy.steps.steps:
        why = anatomy.steps.why_none if anatomy.steps is not None else ""
        yield f"steps: {why or 'none was found'}"
    if not anatomy.batches:
        yield "time by batch size: no step's name carries a batch size, and it cannot be had otherwise"
    if anatomy.launches is None or anatomy.launches.delay_p50_ns is None:
        yield "launch delays: no operation of the device is tied to the call that launched it"


def _untold(run: Layer1Run) -> Iterator[str]:
    """The symptoms that some device's trace cannot show, each with what it would take, in one sentence."""
    found: dict[str, list[Symptom]] = {}
    for anatomy in run.document.anatomy:
        for symptom in anatomy.symptoms:
            if symptom.present is None:
                found.setdefault(symptom.code, []).append(symptom)
    devices = len(run.document.anatomy)
    told = []
    for code, alike in found.items():
        on = "" if len(alike) == devices else f"; on {len(alike)} of {devices} devices"
        told.append(f"{code} {alike[0].title}: {alike[0].numbers}{on}")
    if told:
        yield f"symptoms that the trace cannot show: {' · '.join(told)}"


def not_shown(runs: Sequence[Layer1Run]) -> Iterator[str]:
    """What a reader might take from the results and should not."""
    if not runs:
        return
    if all(run.void for run in runs):
        yield NOTHING_SAID
        return
    if any(run.document.measured for run in runs):
        yield EXACT
        yield PHENOMENON_ONLY
    stacks = [trace.path for r in runs for trace in r.document.traces if python_frames(trace)]
    if stacks:
        yield f"Python stacks were recorded in {files_name(stacks, 'trace')}. {STACKS_COST}"
    training = [trace.path for r in runs for trace in r.document.traces if trace.training]
    if training:
        yield f"{files_name(training, 'trace')}: {OF_TRAINING}."
    yield BUSY_IS_NOT_FULL
    if len(runs) > 1:
        yield "Runs on different files stand beside each other; none is averaged with another."
