"""What to send next, whether it is measured, and when there is no more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from layers.collectors.load.plan import LoadPlan, share_of
from layers.collectors.load.records import Phase

NS_PER_S = 1_000_000_000


class Next(NamedTuple):
    """One request to send."""

    phase: Phase
    sequence: int


class Agenda:
    """One process's requests, in order. Warm-up goes over into the measured part at the first request that
    is asked for when enough warm-up requests have ended and enough time has passed."""

    def __init__(self, plan: LoadPlan, process: int, begin_ns: int) -> None:
        self._extent, self._begin_ns = plan.extent, begin_ns
        self._warmup = count(process, plan.processes)
        self._measured = measured_sequences(plan, process)
        self._warmups_left = share_of(plan.extent.warmup_requests, plan.processes, process)
        self.measured_since_ns = 0

    def take(self, now_ns: int) -> Next | None:
        """The next request, for one that is intended to start now; None when all were sent or time is up."""
        if not self.measured_since_ns:
            if self._warmups_left > 0 or now_ns - self._begin_ns < self._extent.warmup_s * NS_PER_S:
                return Next(Phase.WARMUP, next(self._warmup))
            self.measured_since_ns = now_ns
        if self.time_is_up(now_ns):
            return None
        sequence = next(self._measured, None)
        return None if sequence is None else Next(Phase.MEASURED, sequence)

    def ended(self, phase: Phase) -> None:
        """A request of this phase has ended, however."""
        self._warmups_left -= phase is Phase.WARMUP

    def time_is_up(self, now_ns: int) -> bool:
        duration_s, since_ns = self._extent.duration_s, self.measured_since_ns
        return duration_s is not None and since_ns > 0 and now_ns - since_ns >= duration_s * NS_PER_S


def measured_sequences(plan: LoadPlan, process: int) -> Iterator[int]:
    """Those of this process that are not done yet; endless where only time ends the run."""
    done = frozenset(plan.done)
    all_of_it = count(process, plan.processes)
    if plan.extent.requests is None:
        return (sequence for sequence in all_of_it if sequence not in done)
    return (s for s in range(process, plan.extent.requests, plan.processes) if s not in done)
