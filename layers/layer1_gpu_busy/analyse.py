"""One trace in, everything that Layer 1 finds in it out: the other files of this folder, in order.

A trace read for busy ratios alone stops after the ratios and the replay check. Pure: a function of the trace.
"""

from __future__ import annotations

from dataclasses import replace

from layers.evidence.intervals import total
from layers.evidence.measurement import Artifact
from layers.layer1_gpu_busy.batches import batch_table
from layers.layer1_gpu_busy.busy import (
    busy_time,
    device_window,
    devices_of,
    measure_busy,
    ops_of,
    untimed_devices,
)
from layers.layer1_gpu_busy.copies import copy_table
from layers.layer1_gpu_busy.coverage import check_coverage
from layers.layer1_gpu_busy.idle import idle_anatomy, stream_waits
from layers.layer1_gpu_busy.kernels import kernel_table
from layers.layer1_gpu_busy.launches import launch_statistics
from layers.layer1_gpu_busy.lost_launches import find_lost_launches
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.operators import operators_per_step
from layers.layer1_gpu_busy.overlap import communication_overlap
from layers.layer1_gpu_busy.phases import phase_table
from layers.layer1_gpu_busy.ranks import rank_trace
from layers.layer1_gpu_busy.replays import check_replays
from layers.layer1_gpu_busy.runtime_calls import launched_by
from layers.layer1_gpu_busy.step_times import step_times
from layers.layer1_gpu_busy.steps import find_steps, step_of_operations
from layers.layer1_gpu_busy.strip import draw_strip, drawn_devices
from layers.layer1_gpu_busy.symptoms.catalogue import check_symptoms
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from layers.layer1_gpu_busy.training import holds_training
from parsers.trace_model import DeviceOps, DeviceTrace


def analyse_trace(trace: DeviceTrace, gpu: str = "") -> TraceAnalysis:
    """Every device of the trace, by device id; none where it holds no device operation. `gpu` names the card
    in place of the trace, for its bounds."""
    ops_by_device = [ops_of(trace, device) for device in devices_of(trace)]
    devices = [
        _ratios(trace, ops) if trace.busy_only else analyse_device(trace, ops, gpu) for ops in ops_by_device
    ]
    pairs = [] if trace.busy_only else list(zip(ops_by_device, devices, strict=True))
    for place in drawn_devices(devices) if pairs else ():
        devices[place] = _with_strip(trace, *pairs[place])
    return TraceAnalysis(
        artifact=Artifact(trace.path, trace.sha256, trace.size_bytes),
        text_bytes=trace.text_bytes,
        busy_only=trace.busy_only,
        meta=trace.meta,
        inventory=tuple(trace.inventory),
        losses=tuple(trace.losses),
        coverage=check_coverage(trace),
        recorded_ns=trace.recorded_ns,
        untimed_devices=tuple(untimed_devices(trace)),
        devices=tuple(devices),
        ranks=tuple(rank_trace(trace, ops, device.busy) for ops, device in pairs),
        training=holds_training(trace),
        bounds_for=gpu,
        lost_launches=None if trace.busy_only else find_lost_launches(trace),
    )


def _ratios(trace: DeviceTrace, ops: DeviceOps) -> DeviceAnalysis:
    return DeviceAnalysis(measure_busy(trace, ops), check_replays(trace, ops))


def analyse_device(trace: DeviceTrace, ops: DeviceOps, gpu: str = "") -> DeviceAnalysis:
    """Ratios and anatomy of one device (all `ops` are its own, at least one), without its strip."""
    steps, window = find_steps(trace, ops), device_window(ops)
    facts = SymptomFacts(
        trace=trace,
        ops=ops,
        launched=launched_by(trace, ops),
        busy=measure_busy(trace, ops),
        replays=check_replays(trace, ops),
        steps=steps,
        step_of=step_of_operations(trace, ops, steps),
        idle=idle_anatomy(trace, ops, steps, window),
        launches=launch_statistics(trace, ops),
        copies=copy_table(trace, ops),
        gpu=gpu,
    )
    return DeviceAnalysis(
        busy=facts.busy,
        replays=facts.replays,
        steps=facts.steps,
        step_times=step_times(ops, steps),
        idle=facts.idle,
        stream_waits=stream_waits(trace, ops),
        launches=facts.launches,
        kernels=kernel_table(trace, ops, total(busy_time(ops))),
        copies=facts.copies,
        overlap=communication_overlap(trace, ops),
        phases=phase_table(trace, ops),
        operators=operators_per_step(trace, steps),
        batches=batch_table(trace, ops, steps),
        symptoms=check_symptoms(facts),
    )


def _with_strip(trace: DeviceTrace, ops: DeviceOps, device: DeviceAnalysis) -> DeviceAnalysis:
    assert device.steps is not None
    return replace(device, strip=draw_strip(trace, ops, device.steps, device_window(ops)))
