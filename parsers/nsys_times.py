"""Which rows of an nsys export lie at a time that can be: one absurd row must not stretch the window of all.

Device work lies inside the stated length of the recording, to the nanosecond in every public export. Where
most of it does not, the stated length is wrong or counts from another moment, and bounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsers.loss import Loss
from parsers.nsys_file import NsysFile
from parsers.trace_model import I64, Bools

FARTHEST_NS = 1 << 61
"""73 years; beyond it, differences of times no longer fit 64 bits."""
OVERSHOOT_NS = 100_000_000
"""How far beyond the recording a row may lie. perfkit's choice: device work never does in public exports, a
system call by 43 ms."""
MOST_SHARE = 0.5
"""Of all device work outside the stated recording: then it is the statement that is wrong. perfkit's
choice."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The first and the last moment that a row may name."""

    start_ns: int = -FARTHEST_NS
    end_ns: int = FARTHEST_NS

    def hold(self, start_ns: I64, end_ns: I64) -> Bools:
        """Which rows lie inside; start and end 0 is a time that was not recorded, and none that is wrong."""
        inside: Bools = (start_ns >= self.start_ns) & (end_ns <= self.end_ns) & (end_ns >= self.start_ns)
        untimed: Bools = (start_ns == 0) & (end_ns == 0)
        return (inside & (start_ns <= self.end_ns)) | untimed


def limits_of(zero_ns: int, duration_ns: int | None, start_ns: I64, end_ns: I64) -> TimeLimits:
    """The limits that the stated recording sets; `start_ns` and `end_ns` are those of all device work."""
    if duration_ns is None or not 0 < duration_ns < FARTHEST_NS:
        return TimeLimits()
    stated = TimeLimits(zero_ns - OVERSHOOT_NS, zero_ns + duration_ns + OVERSHOOT_NS)
    outside = np.count_nonzero(~stated.hold(start_ns, end_ns))
    return stated if outside <= MOST_SHARE * len(start_ns) else TimeLimits()


def held(
    file: NsysFile, what: str, limits: TimeLimits, start_ns: I64, end_ns: I64, *, may_hide_device_work: bool
) -> Bools:
    """Which rows lie inside the limits; the others are counted as lost."""
    keep = limits.hold(start_ns, end_ns)
    if outside := int(np.count_nonzero(~keep)):
        said = f"{outside:,} {what} at a time outside the recording: dropped"
        file.losses.append(Loss(said, -1, 0, outside, may_hide_device_work))
    return keep
