"""What the guards on nsys exports look for: one pure function per guard; None for any other file."""

from __future__ import annotations

from collections import Counter

from layers.evidence.guard import Effect, Outcome
from layers.evidence.wording import FEW, counted, pct, time_text
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.nsys_facts import NsysFacts
from layers.layer1_gpu_busy.nsys_no_cuda import LOSSES
from layers.layer1_gpu_busy.thresholds import Word, word_of
from parsers.nsys_model import Trouble

OVERHEAD_SHARE = 0.25
"""Idle time spent in the profiler itself beyond which the rest cannot carry a host-bound verdict. perfkit's
choice: public exports reach 18 %, most are at 0."""

NEWEST_SCHEMA = (3, 25)
"""The newest that perfkit was checked against. NVIDIA: a major version breaks scripts, a minor one may."""


def events_missing(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None or facts.device is None:
        return None
    said = [trouble for trouble in nsys.capture.troubles if trouble in LOSSES]
    if not said:
        return Outcome(False, "nsys reports no lost CUDA events")
    bound = "the ratio is a lower bound"
    return Outcome(
        True, f"{'; '.join(said)}: {bound}", Effect.NOTE if facts.word is Word.DEVICE_BOUND else None
    )


def whole_replays(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    of_device = nsys.of_device(facts.device.busy.device) if nsys and facts.device else None
    if of_device is None or facts.ratio is None:
        return None
    if not of_device.replays:
        return Outcome(False, "no graph replay is recorded as a whole")
    low, replays = of_device.ratio_without_replays, counted(of_device.replays, "graph replay")
    message = f"{replays} recorded as one interval each: their kernels are in no table"
    if low is None:
        return Outcome(True, message, Effect.NOTE)
    bounds = (
        f"the true ratio lies between {pct(low)} and {pct(facts.ratio)}, since gaps inside a replay count"
    )
    same = word_of(low, facts.thresholds) is word_of(facts.ratio, facts.thresholds)
    return Outcome(True, f"{message}; {bounds}", Effect.NOTE if same else None)


def cut(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None or facts.device is None:
        return None
    held, duration_ns = time_text(nsys.events_ns), nsys.capture.duration_ns
    if not nsys.cut:
        return Outcome(False, f"the whole recording of {held} is there")
    of = f" of a recording of {time_text(duration_ns)}" if duration_ns else ""
    return Outcome(True, f"the export holds {held}{of}; the rest is not idle time, it is not there")


def not_mapped(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None or facts.device is None or len({d.pid for d in nsys.devices}) < 2:
        return None
    processes = counted(len({d.pid for d in nsys.devices}), "process")
    if nsys.mapped:
        return Outcome(False, f"the devices of {processes} are mapped to GPUs")
    shown = ", ".join(f"device {d.device} is device {d.ordinal} of pid {d.pid}" for d in nsys.devices[:FEW])
    more = f" and {len(nsys.devices) - FEW} more" if len(nsys.devices) > FEW else ""
    shared = max(Counter(d.ordinal for d in nsys.devices).values()) > 1
    message = f"{processes}, and the export does not say which GPUs they ran on: {shown}{more}"
    return Outcome(True, message, None if shared else Effect.NOTE)


def metrics_refused(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None:
        return None
    if nsys.metrics:
        samples = counted(max(mean.n for mean in nsys.metrics), "sample")
        return Outcome(False, f"GPU metrics are there ({samples})")
    if Trouble.COUNTER_RIGHTS not in nsys.capture.troubles:
        return None
    return Outcome(True, f"{Trouble.COUNTER_RIGHTS}: SM active and tensor active were not measured")


def process_without_operations(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None or facts.trace.busy_only or not nsys.processes:
        return None
    silent = [p for p in nsys.processes if p.launches and not p.operations]
    if not silent:
        return Outcome(
            False, f"{counted(len(nsys.processes), 'process')} with CUDA work, each with operations"
        )
    named = ", ".join(f"pid {p.pid} ({counted(p.launches, 'launch')})" for p in silent[:FEW])
    return Outcome(True, f"no operation of {named} is recorded; the ratios are those of the other processes")


def profiler_in_the_gaps(facts: TraceFacts) -> Outcome | None:
    nsys, device = facts.trace.nsys, facts.device
    if nsys is None or device is None or device.idle is None or not device.idle.idle_ns:
        return None
    of_device = nsys.of_device(device.busy.device)
    if of_device is None:
        return None
    share = of_device.overhead_idle_ns / device.idle.idle_ns
    message = f"during {pct(share)} of the idle time a launching thread was working for the profiler"
    fired = share > OVERHEAD_SHARE
    return Outcome(fired, message, Effect.NOTE if facts.word is Word.DEVICE_BOUND else None)


def unknown_schema(facts: TraceFacts) -> Outcome | None:
    nsys = facts.trace.nsys
    if nsys is None:
        return None
    version = _version(nsys)
    if version is None:
        return Outcome(False, "the export names no schema version (nsys of 2020 or 2021)")
    newest = ".".join(map(str, NEWEST_SCHEMA))
    message = f"schema {nsys.capture.schema}, checked up to {newest}"
    return Outcome(version > NEWEST_SCHEMA, message, None if version[0] > NEWEST_SCHEMA[0] else Effect.NOTE)


def no_kernels(facts: TraceFacts) -> Outcome | None:
    nsys, device = facts.trace.nsys, facts.device
    if nsys is None or device is None:
        return None
    if device.busy.kernels:
        return Outcome(False, f"{device.busy.kernels:,} kernels and replays")
    chosen = "; the export was made of chosen tables" if nsys.capture.tables_chosen else ""
    return Outcome(True, f"copies and sets alone: no kernel and no replay is recorded{chosen}")


def _version(nsys: NsysFacts) -> tuple[int, int] | None:
    parts = nsys.capture.schema.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdecimal() for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])
