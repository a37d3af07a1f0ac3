"""Do host and device keep one clock? Two things cannot be: an operation that begins before the call that
launched it, and a call that waits for an operation and returns before that has ended. The first tells a
device that is early, the second one that is late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsers.trace_model import I64, Bools, HostSpans

CLOCK_TOLERANCE = 0.05
"""Share of operations that may begin before their launch call did. In none of the real traces at hand does a
single one; more than a few say that host and device kept different clocks. perfkit's choice."""
WAIT_TOLERANCE_NS = 20_000
"""By which an operation may seem to end after its wait returned. In the real traces at hand one of 246 waits
does, by 8 µs (ROCm). perfkit's choice."""
SHORT_WAITS = 0.5
"""Share of the waits that return too early from which clocks are two: one operation whose end is wrong, or
one that a wait was not for, spoils one wait. perfkit's choice."""
NEVER_NS = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was found of one device: the share of operations that began before their call (None: none has a
    call), the waits whose work is known, and how many of them returned before it had ended.
    """

    early_share: float | None = None
    waits: int = 0
    short_waits: int = 0

    @property
    def waits_are_short(self) -> bool:
        return self.short_waits > 0 and self.short_waits >= SHORT_WAITS * self.waits

    @property
    def agree(self) -> bool:
        """Whether times of host and device can be compared, as far as anything tells."""
        return (self.early_share or 0.0) <= CLOCK_TOLERANCE and not self.waits_are_short


NO_CLOCKS = Clocks()
"""Nothing to compare."""


@dataclass(frozen=True, slots=True)
class Waits:
    """When waits returned, and when what they waited for had ended; shape (waits,)."""

    returned_ns: I64
    work_ended_ns: I64

    @property
    def short(self) -> int:
        """How many returned before their work had ended."""
        return int(np.count_nonzero(self.work_ended_ns - self.returned_ns > WAIT_TOLERANCE_NS))

    def __len__(self) -> int:
        return len(self.returned_ns)


def device_waits(waits: HostSpans, submitted_ns: I64, ended_ns: I64) -> Waits:
    """Waits (by start) for all of a device: each for the operations submitted since the one before it."""
    of = np.searchsorted(waits.start_ns, submitted_ns)
    waited_for = of < len(waits)
    work_ended_ns = np.full(len(waits), NEVER_NS)
    np.maximum.at(work_ended_ns, of[waited_for], ended_ns[waited_for])
    asked = work_ended_ns > NEVER_NS
    return Waits(waits.end_ns[asked], work_ended_ns[asked])


def copy_waits(calls: HostSpans, are_waits: Bools, copy: I64, ended_ns: I64) -> Waits:
    """Waits for a stream that a thread makes next after it called for a copy to the host: reading a value
    does both, on one stream. `copy` are rows of `calls` (by start), `ended_ns` when each copy had ended.
    """
    returned_ns = np.full(len(copy), NEVER_NS)
    for thread in np.unique(calls.track_id[copy]):
        of_thread = np.flatnonzero(calls.track_id == thread)
        mine = np.flatnonzero(calls.track_id[copy] == thread)
        place = np.searchsorted(calls.start_ns[of_thread], calls.end_ns[copy[mine]])
        mine, place = mine[place < len(of_thread)], place[place < len(of_thread)]
        following = of_thread[place]
        returned_ns[mine] = np.where(are_waits[following], calls.end_ns[following], NEVER_NS)
    asked = returned_ns > NEVER_NS
    return Waits(returned_ns[asked], ended_ns[asked])
