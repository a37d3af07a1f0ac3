"""How a capture came about, when perfkit made it: of which process, under which load, at what price.

A file of stacks tells none of this, so captures that were found (`--raw`) have none of it. Every number is
one that was read: what could not be read is None, or left out, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Mode(StrEnum):
    """Which ticks were kept: the three answer different questions and are never pooled."""

    IDLE = "idle"
    """all of them (`--idle`): where is it blocked"""
    ACTIVE = "active"
    """those of threads that ran or waited for a CPU: where does CPU time go"""
    GIL = "gil"
    """those of the holder of the interpreter's lock (`--gil`)"""

    UNKNOWN = "unknown"
    """nobody said, and the file does not tell: shares are of the ticks in it, whatever those are of"""


class Ended(StrEnum):
    """How a recording ended."""

    COMPLETE = "complete"
    """the profiler took all ticks that it was asked for"""
    LATE = "stopped late"
    """it fell behind, or took so much longer than asked that it was stopped; the file holds what there was"""
    INTERRUPTED = "interrupted"
    """perfkit was told to end; the file holds what there was"""
    TARGET_ENDED = "target ended"
    FAILED = "failed"
    """py-spy ended in an error, or left no file; where there is one, nobody knows what it lacks"""


@dataclass(frozen=True, slots=True)
class ThreadCpu:
    """One thread in the window of a capture, as the kernel's scheduler counts it: time on a CPU and time it
    waited for one. What is left of `window_s` it was blocked. `thread_id` is the system's."""

    thread_id: int
    name: str
    on_cpu_s: float
    waiting_s: float
    window_s: float


@dataclass(frozen=True, slots=True)
class LoadEvidence:
    """Whether the server worked while it was recorded, and who says so (`source`, in words).

    `completed` requests ended in the window, `in_flight_mean` were under way on average, `cpu_share` is the
    CPU time of the process over the window (1.0: one core). None: not known from this source.
    """

    source: str
    completed: int | None
    in_flight_mean: float | None
    cpu_share: float | None

    @property
    def counts_requests(self) -> bool:
        """Whether it is about requests: CPU time alone proves no work, an idle scheduler may spin."""
        return self.completed is not None or self.in_flight_mean is not None


@dataclass(frozen=True, slots=True)
class TickCost:
    """What one look costs the target, which stands still meanwhile: the profiler's CPU time, median of `n`
    looks at `threads` threads of the system."""

    pause_ms: float
    n: int
    threads: int


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of the profiler. `mode` as in `Mode`; `threads` are those that were there from begin to end.

    `wall_s` is the time from its first tick (from its start where it never said so) to its end, `asked_s`
    what it was asked for.
    """

    mode: str
    pid: int
    command: tuple[str, ...]
    profiler: str
    target_python: str
    rate_hz: int
    asked_s: float
    begun: datetime
    ended: datetime
    wall_s: float
    exit_code: int
    ended_how: Ended
    threads: tuple[ThreadCpu, ...] = ()
    load: LoadEvidence | None = None
    cost: TickCost | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """A process that was considered and not taken, and why."""

    pid: int
    argv: tuple[str, ...]
    why_not: str


@dataclass(frozen=True, slots=True)
class Target:
    """The process that is recorded, and what speaks for it (`why`, sentences).

    `argv` is free of secrets; `threads` are the system's; `python` is the version that it runs, "" where
    nothing tells; `namespace_pid` is its id inside its own PID namespace (`pid` where that is ours).
    """

    pid: int
    argv: tuple[str, ...]
    why: tuple[str, ...]
    others: tuple[Other, ...]
    threads: int
    python: str
    namespace_pid: int
