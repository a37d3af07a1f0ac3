"""Records of the idle time of a device: why, where, and the longest gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


class Cause(StrEnum):
    """Why the device idled, as far as the trace shows it."""

    SYNC = "host waited in a sync call"
    COPY = "host waited in a blocking copy"
    LAUNCH_BOUND = "host was launching too slowly"
    HOST_WORK = "host was busy with something else"
    NOTHING_SUBMITTED = "nothing was submitted"
    QUEUED = "work was queued, the device had not started it"
    UNKNOWN = "the trace does not show it"


class Place(StrEnum):
    """Where in the step the device idled."""

    WITHIN_STEP = "between kernels of one step"
    STEP_START = "at step start"
    AFTER_SAMPLING = "after sampling or a copy to the host"
    BETWEEN_STEPS = "between steps"
    UNPLACED = "no steps found"


_Word = TypeVar("_Word", Cause, Place)


def _most_first(times_ns: Mapping[_Word, int]) -> tuple[tuple[_Word, int], ...]:
    return tuple(sorted(((word, ns) for word, ns in times_ns.items() if ns), key=lambda item: -item[1]))


@dataclass(frozen=True, slots=True)
class Gap:
    """One idle stretch of the whole device (no stream busy), with the operations around it.

    `host_op` is the innermost host span that covered the middle of the gap on the thread that made the next
    launch (empty: none recorded); `host_call` the runtime call there, if any.
    """

    start_ns: int
    end_ns: int
    cause: Cause
    place: Place
    after_op: str
    before_op: str
    host_op: str
    host_call: str


@dataclass(frozen=True, slots=True)
class IdleAnatomy:
    """All idle time of a device inside its window. `by_cause_ns` and `by_place_ns` each sum to `idle_ns`."""

    idle_ns: int
    gaps: int
    median_gap_ns: float | None
    by_cause_ns: dict[Cause, int]
    by_place_ns: dict[Place, int]
    largest: tuple[Gap, ...]

    @property
    def causes(self) -> tuple[tuple[Cause, int], ...]:
        """The causes that occur with their times, the chief one first; none without idle time."""
        return _most_first(self.by_cause_ns)

    @property
    def places(self) -> tuple[tuple[Place, int], ...]:
        """The same of places."""
        return _most_first(self.by_place_ns)


@dataclass(frozen=True, slots=True)
class StreamWait:
    """Gaps between neighbours on one stream, classified as HTA does: host wait (the launch call began after
    the previous operation ended), kernel wait (gap under 30 µs), other. A stream gap is not a device
    gap."""

    stream: int
    gaps: int
    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int
