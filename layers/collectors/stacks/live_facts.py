"""All that is known of a live recording as a whole: what its guards look at, and what its result shows.

`Recording` says how one capture came about; here is what stood against it, and what was thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layers.collectors.stacks.recording import Ended, Recording, Target, TickCost


class Obstacles(StrEnum):
    """Kinds of reasons why a process cannot be recorded."""

    NO_PROFILER = "no profiler"
    RIGHTS = "rights"
    STOPPED = "stopped"
    ENDED = "ended"
    TRACED = "traced"
    INTERPRETER = "interpreter"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason: what was seen, and the exact change that removes it."""

    kind: Obstacles
    seen: str
    fix: str

    def __str__(self) -> str:
        return f"{self.seen}. Do: {self.fix}"


@dataclass(frozen=True, slots=True)
class Likelier:
    """A process of the target's tree that looks more like the scheduler, and why."""

    pid: int
    why: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the profiler and what was seen beside it.

    `path` is its file, "" where it left none; `said` its last words where it failed; `window_ns` its time on
    the monotonic clock. `lag_s` is the largest delay that it reported, None for none. `tracers`: processes
    that traced or profiled the target as well. `left_stopped`: the target stood still when the profiler had
    gone. `discarded` says why it is not used.
    """

    recording: Recording
    path: str
    log_path: str
    window_ns: tuple[int, int]
    said: str
    lag_s: float | None
    tracers: tuple[int, ...]
    left_stopped: bool
    discarded: str = ""

    @property
    def kept(self) -> bool:
        return not self.discarded

    @property
    def is_read(self) -> bool:
        """Whether its file becomes a capture: it is used, or void by py-spy's own word of a lag."""
        lagged = self.recording.ended_how is Ended.LATE and self.lag_s is not None
        return bool(self.path) and (self.kept or lagged)


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """A live recording. `likelier`: a process that looks more like the scheduler than the one that was named.
    `nested`: the target lives in a PID namespace below ours. `asked_rate_hz`: what the user asked for (None:
    chosen by `cost`). `asked`: captures that were to be made. `cut_short`: somebody ended it before that."""

    target: Target
    obstacles: tuple[Obstacle, ...] = ()
    nested: bool = False
    likelier: Likelier | None = None
    cost: TickCost | None = None
    asked_rate_hz: int | None = None
    asked: int = 0
    attempts: tuple[Attempt, ...] = ()
    cut_short: bool = False

    @property
    def kept(self) -> tuple[Attempt, ...]:
        """Those that are used."""
        return tuple(attempt for attempt in self.attempts if attempt.kept)

    @property
    def discarded(self) -> tuple[Attempt, ...]:
        """Those that are not."""
        return tuple(attempt for attempt in self.attempts if not attempt.kept)
