"""What a profile of an emulated device holds: calls of the host, work of the device. Times are ns of the
monotonic clock, which all processes share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """All of it, from start to stop. Of a full log the oldest activities were overwritten, in the order in
    which they ended: `lost`."""

    device_name: str
    host_pid: int
    device_pid: int
    start_ns: int
    end_ns: int
    calls: list[HostCall]
    annotations: list[Annotation]
    activities: list[Activity]
    lost: int

    def whole(self) -> Profile:
        """The part of which nothing was lost: the calls from the end of the oldest activity that is left on,
        with what they caused. Calls before may have lost theirs, and would look like work that never ran."""
        if not self.lost:
            return self
        begin_ns = self.activities[0].end_ns if self.activities else self.end_ns
        calls = [one for one in self.calls if one.start_ns >= begin_ns]
        known = {one.correlation for one in calls}
        activities = [one for one in self.activities if one.correlation in known]
        return replace(
            self,
            start_ns=begin_ns,
            calls=calls,
            annotations=[one for one in self.annotations if one.start_ns >= begin_ns],
            activities=activities,
            lost=self.lost + len(self.activities) - len(activities),
        )
