"""All captures of one target: with --idle and without in turn, each repeat of both before the next.

    cost       what one look costs, so that the rate can be chosen
    r1         idle, active
    r2         idle, active ...
    gil        one short capture of who holds the interpreter's lock; a look without a holder leaves nothing

Neighbours in time share what the machine did meanwhile, so the two questions are asked in turn. A capture
that fell behind is thrown away, kept on disk and named, and asked again at a lower rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from layers.collectors.stacks.live_facts import Attempt
from layers.collectors.stacks.process_facts import ProcessFacts
from layers.collectors.stacks.profiler import Profiler
from layers.collectors.stacks.rates import REPEATS, SECONDS, chosen_rate, slower_rate
from layers.collectors.stacks.recorder import Asked, record
from layers.collectors.stacks.recording import Ended, Mode, TickCost
from layers.collectors.stacks.tick_cost import measure_cost

CUT = (Ended.INTERRUPTED, Ended.TARGET_ENDED)
"""How many looks such a capture holds is not known, so no share of them can be told."""
GIL_SECONDS = 10
"""At 20 Hz 199 looks: a share to within 7 points."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What to record. `rate_hz` None: chosen by the cost of a look. `modes` are interleaved; of those without
    `--idle` there are `active_repeats` (None: as many as of the others). `gil_seconds` 0: the lock is not
    asked for."""

    folder: Path
    seconds: int = SECONDS
    repeats: int = REPEATS
    rate_hz: int | None = None
    modes: tuple[Mode, ...] = (Mode.IDLE, Mode.ACTIVE)
    active_repeats: int | None = None
    gil_seconds: int = GIL_SECONDS

    @property
    def captures(self) -> int:
        """How many there are to be."""
        return sum(map(self.repeats_of, self.modes)) + bool(self.gil_seconds)

    def repeats_of(self, mode: Mode) -> int:
        """How many captures of a mode there are to be."""
        if mode is Mode.ACTIVE and self.active_repeats is not None:
            return self.active_repeats
        return self.repeats


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of it."""

    cost: TickCost | None
    attempts: tuple[Attempt, ...]
    cut_short: bool


@dataclass(frozen=True, slots=True)
class Follow:
    """Who follows a session: whether to end, lines of what happens, and where one capture stands."""

    told: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _: None
    step: Callable[[float], None] = lambda _: None


def record_session(
    profiler: Profiler, target: ProcessFacts, names: Mapping[int, str], plan: SessionPlan, follow: Follow
) -> Recorded:
    """Record until all stands, the target ends, nothing slower is left to try, or somebody ends it."""
    cost = measure_cost(profiler, target, follow.told)
    rate = plan.rate_hz or chosen_rate(cost.pause_ms if cost is not None else None)
    session = _Session(profiler, target, names, plan, follow, cost, rate)
    return Recorded(cost, tuple(session.captures()), follow.told())


@dataclass(slots=True)
class _Session:
    profiler: Profiler
    target: ProcessFacts
    names: Mapping[int, str]
    plan: SessionPlan
    follow: Follow
    cost: TickCost | None
    rate: int | None
    alive: bool = True

    def captures(self) -> Iterator[Attempt]:
        for mode, number, seconds in self._wanted():
            yield from self._capture(mode, number, seconds)
            if not self.alive or self.rate is None or self.follow.told():
                return

    def _wanted(self) -> Iterator[tuple[Mode, int, int]]:
        for number in range(1, self.plan.repeats + 1):
            for mode in self.plan.modes:
                if number <= self.plan.repeats_of(mode):
                    yield mode, number, self.plan.seconds
        if self.plan.gil_seconds:
            yield Mode.GIL, 1, self.plan.gil_seconds

    def _capture(self, mode: Mode, number: int, seconds: int) -> Iterator[Attempt]:
        """One capture, and before it those that fell behind."""
        tried = 0
        while self.rate is not None:
            name = f"{mode}-{number}" + (f"-again-{tried}" if tried else "")
            attempt = self._record(mode, name, seconds)
            yield attempt
            self.alive = attempt.recording.ended_how is not Ended.TARGET_ENDED
            if attempt.recording.ended_how is not Ended.LATE:
                return
            tried, self.rate = tried + 1, slower_rate(self.rate)
            if self.rate is not None:
                self.follow.say(f"{attempt.discarded}: again at {self.rate} Hz")

    def _record(self, mode: Mode, name: str, seconds: int) -> Attempt:
        assert self.rate is not None
        asked = Asked(mode, self.rate, seconds, self.plan.folder / f"{name}.json")
        self.follow.say(f"{name}: {seconds} s at {self.rate} Hz")
        attempt = record(
            self.profiler,
            self.target,
            asked,
            names=self.names,
            cost=self.cost,
            told=self.follow.told,
            step=self.follow.step,
        )
        return replace(attempt, discarded=why_discarded(attempt))


def why_discarded(attempt: Attempt) -> str:
    """Why an attempt is not used; "" where it is. Pure."""
    recording = attempt.recording
    name = Path(attempt.path or attempt.log_path).stem
    if recording.ended_how is Ended.LATE:
        behind = f"{attempt.lag_s:g} s behind" if attempt.lag_s is not None else "late"
        return f"{name}: py-spy was {behind} at {recording.rate_hz} Hz after {recording.wall_s:.1f} s"
    if recording.ended_how in CUT:
        return f"{name}: {recording.ended_how} after {recording.wall_s:.1f} s of {recording.asked_s:g}"
    if recording.ended_how is Ended.FAILED or not attempt.path:
        what = "py-spy ended in an error" if attempt.path else "no file"
        return f"{name}: {what}: {attempt.said or f'py-spy ended with code {recording.exit_code}'}"
    return ""
