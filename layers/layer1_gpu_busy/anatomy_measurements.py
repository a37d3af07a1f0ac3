"""The numbers of one device's anatomy that findings rest on: its idle time by cause and by place, and the
communication that no computation hides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from layers.evidence.measurement import Artifact, Measurement
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, Place
from layers.layer1_gpu_busy.model import DeviceAnalysis

EXPOSED_COMMUNICATION = "exposed_communication_ratio"


def idle_share(word: Cause | Place) -> str:
    """The name of the measurement of one cause's or place's share of the idle time: the words that stand
    everywhere else."""
    return "idle_share_" + re.sub(r"[^a-z]+", "_", str(word))


def anatomy_measurements(
    device: DeviceAnalysis, method: str, artifact: Artifact, scope: str
) -> list[Measurement]:
    """What was measured of the device beside its busy ratios; empty where only those were asked for."""
    idle = _idle(device.idle, method, artifact, scope) if device.idle is not None else ()
    return [*idle, *_communication(device, method, artifact, scope)]


def _idle(idle: IdleAnatomy, method: str, artifact: Artifact, scope: str) -> Iterator[Measurement]:
    how = f"{method}: share of the device window's idle time"
    words: list[tuple[Cause | Place, int]] = [*idle.by_cause_ns.items(), *idle.by_place_ns.items()]
    for word, ns in words:
        if ns:
            yield Measurement(
                idle_share(word), ns / idle.idle_ns, "share", idle.gaps, "gaps", how, artifact, scope
            )


def _communication(
    device: DeviceAnalysis, method: str, artifact: Artifact, scope: str
) -> Iterator[Measurement]:
    overlap, window_ns = device.overlap, device.busy.device_window.window.length_ns
    if overlap is not None and window_ns:
        value, n = overlap.exposed_communication_ns / window_ns, overlap.communication_ops
        how = f"{method}: communication outside computation, over the device window"
        yield Measurement(
            EXPOSED_COMMUNICATION, value, "share", n, "communication kernels", how, artifact, scope
        )
