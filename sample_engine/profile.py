"""What a profile of an emulated device holds: calls of the host, work of the device. Times are ns of the
monotonic clock, which all processes share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ActivityKind(IntEnum):
    """What the device did."""

    KERNEL = 0
    COPY_IN = 1
    COPY_OUT = 2


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call into the device. `operation` is the name of the method; activities that it caused carry its
    correlation id.
    """

    operation: str
    correlation: int
    start_ns: int
    end_ns: int
    thread_id: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """A named stretch of host code."""

    text: str
    start_ns: int
    end_ns: int
    thread_id: int


@dataclass(frozen=True, slots=True)
class Activity:
    """One kernel or copy.

    From `seen_ns`, when the device found the command, to `start_ns` it decoded it (nothing for a node of a
    graph but the first); to `end_ns` it ran. `queue_was_empty`: the device had come for its next command
    before the host had queued it. `graph_id` is 0 outside graphs, `node` counts from 1 inside.
    """

    kind: ActivityKind
    name: str
    stream: int
    queue_was_empty: bool
    correlation: int
    graph_id: int
    node: int
    seen_ns: int
    start_ns: int
    end_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """All of it, from start to stop. `lost` activities were overwritten: the oldest ones of a full log."""

    device_name: str
    host_pid: int
    device_pid: int
    start_ns: int
    end_ns: int
    calls: list[HostCall]
    annotations: list[Annotation]
    activities: list[Activity]
    lost: int
