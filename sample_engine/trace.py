"""Writes a profile as a chrome trace in the shape of Kineto (torch.profiler), which analysers read.

Such tools know device work by its category and launches by the names of CUDA calls, so those are used here.
That there was no GPU is said by the device's name, by its process's name and by `emulated` among the
arguments of every event. All kernels of a replay carry the correlation id of their launch, as in Kineto.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from sample_engine.profile import Activity, ActivityKind, Annotation, HostCall, Profile
from sample_engine.trace_events import DEVICE, arrow, complete, instant, metadata
from sample_engine.trace_graphs import GraphTrace, shown

CALL_NAMES = {
    "launch": "cudaLaunchKernel",
    "replay": "cudaGraphLaunch",
    "copy_in": "cudaMemcpyAsync",
    "copy_out": "cudaMemcpyAsync",
    "synchronize": "cudaStreamSynchronize",
    "event_synchronize": "cudaEventSynchronize",
}
"""Calls of the host, by method; what is not here is written under its own name."""

COPY_NAMES = {
    ActivityKind.COPY_IN: "Memcpy HtoD (Pinned -> Device)",
    ActivityKind.COPY_OUT: "Memcpy DtoH (Device -> Pinned)",
}


def write_trace(path: Path, profile: Profile, graph_trace: GraphTrace = "node") -> None:
    """Write the file, compressed if its name ends in .gz."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": DEVICE, "name": profile.device_name}],
        "graphTrace": graph_trace,
        "lostActivities": profile.lost,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": time.time_ns() - time.perf_counter_ns(),
    }
    events = ",\n".join(_events(profile, graph_trace))
    text = f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n], "traceName": {json.dumps(path.name)}}}\n'
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def _events(profile: Profile, graph_trace: GraphTrace) -> Iterable[str]:
    activities = list(shown(profile.activities, graph_trace))
    return chain(
        _names(profile, activities),
        (_call(profile, one) for one in profile.calls),
        (_annotation(profile, one) for one in profile.annotations),
        map(_activity, activities),
        _arrows(profile, activities),
        (_decoding(profile, one) for one in profile.activities if one.start_ns > one.seen_ns),
        [_recorded(profile), instant("Record Window End", profile.end_ns)],
    )


def _names(profile: Profile, activities: list[Activity]) -> Iterator[str]:
    device, host, worker = (DEVICE, 0), (profile.host_pid, 0), (profile.device_pid, 0)
    yield metadata("process_name", device, "name", f"device {DEVICE}: {profile.device_name}")
    yield metadata("process_labels", device, "labels", profile.device_name)
    yield metadata("process_name", host, "name", "host")
    yield metadata("process_name", worker, "name", f"device process: {profile.device_name}")
    for stream in sorted({one.stream for one in activities}):
        yield metadata("thread_name", (DEVICE, stream), "name", f"stream {stream}")


def _call(profile: Profile, call: HostCall) -> str:
    name = CALL_NAMES.get(call.operation, call.operation)
    where = (profile.host_pid, call.thread_id)
    return complete("cuda_runtime", name, where, call.start_ns, call.end_ns, correlation=call.correlation)


def _annotation(profile: Profile, annotation: Annotation) -> str:
    where = (profile.host_pid, annotation.thread_id)
    return complete("user_annotation", annotation.text, where, annotation.start_ns, annotation.end_ns)


def _activity(activity: Activity) -> str:
    category, name, numbers = "kernel", activity.name, {}
    if activity.kind is not ActivityKind.KERNEL:
        category, name, numbers = "gpu_memcpy", COPY_NAMES[activity.kind], {"bytes": activity.size_bytes}
    numbers |= {
        "device": DEVICE,
        "stream": activity.stream,
        "correlation": activity.correlation,
        "graph id": activity.graph_id,
        "graph node id": activity.node,
    }
    return complete(category, name, (DEVICE, activity.stream), activity.start_ns, activity.end_ns, **numbers)


def _decoding(profile: Profile, activity: Activity) -> str:
    """Time of the device process that is neither a kernel nor idle."""
    where = (profile.device_pid, activity.stream)
    return complete("overhead", "emulation: decode a command", where, activity.seen_ns, activity.start_ns)


def _arrows(profile: Profile, activities: list[Activity]) -> Iterator[str]:
    """From each call to the first activity that it caused."""
    first: dict[int, Activity] = {}
    for one in activities:
        first.setdefault(one.correlation, one)
    for call in profile.calls:
        if activity := first.get(call.correlation):
            yield arrow("s", call.correlation, (profile.host_pid, call.thread_id), call.start_ns)
            yield arrow("f", call.correlation, (DEVICE, activity.stream), activity.start_ns)


def _recorded(profile: Profile) -> str:
    """The recorded window, named as torch.profiler names it for the tools that look for it."""
    where = ("Spans", "PyTorch Profiler")
    return complete("Trace", "PyTorch Profiler (0)", where, profile.start_ns, profile.end_ns)
