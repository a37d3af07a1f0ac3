"""One thread in all modes at once: how long it waits, how long it runs, and on which lines.

Captures with --idle tell where a thread is; those without tell where it is on a CPU. Set against the looks
that the profiler took (rate x duration - 1), the second become shares of time, and both answers stand on one
scale: a line that holds a third of the time and little of a CPU waits inside a call that is not Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.choice import Choice, choose, cpu_seconds, same_thread
from layers.layer2_stacks.model import Capture, Row, Scope, ScopeAnalysis, Share, StackAnalysis
from layers.layer2_stacks.shares import estimate
from layers.layer2_stacks.told import told_of

RowKey = tuple[str, str]
CHIEF = (Mode.IDLE, Mode.UNKNOWN, Mode.ACTIVE, Mode.GIL)
"""Which mode's shares are of most: of all time before those of a CPU."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The thread that the verdict is of. `scopes` by mode; `why` it was chosen, of `others` other scopes.

    `on_cpu` is the share of time in which it ran or waited for a CPU and was in no wait, `holds_lock` that in
    which it held the interpreter's lock, `lines` and `functions` what rows hold of a CPU or, where it was
    recorded by the lock, of that; all of time. None and empty where no log says how many looks there were.
    """

    scope: Scope
    why: str
    others: int
    scopes: Mapping[Mode, ScopeAnalysis]
    on_cpu: Share | None
    holds_lock: Share | None
    lines: Mapping[RowKey, Share]
    functions: Mapping[RowKey, Share]

    @property
    def mode(self) -> Mode:
        """The mode that the verdict's shares are of."""
        return next(mode for mode in CHIEF if mode in self.scopes)

    @property
    def main(self) -> ScopeAnalysis:
        """Its stacks in that mode."""
        return self.scopes[self.mode]

    @property
    def idle(self) -> ScopeAnalysis | None:
        """Its stacks at all looks; None where there is no such capture."""
        return self.scopes.get(Mode.IDLE)


def read(analyses: Sequence[StackAnalysis], choice: Choice) -> Reading | None:
    """The thread that is asked for, or that most speaks for; None where no capture has a tick."""
    by_mode = {analysis.mode: analysis for analysis in analyses if analysis.scopes}
    if not by_mode:
        return None
    chief = next(by_mode[mode] for mode in CHIEF if mode in by_mode)
    used_s = cpu_seconds(capture for analysis in analyses for capture in analysis.captures)
    running = by_mode.get(Mode.ACTIVE) or by_mode.get(Mode.GIL)
    chosen, why = choose(chief.scopes, choice, running, used_s)
    scopes = {
        mode: found
        for mode, analysis in by_mode.items()
        if (found := same_thread(chosen.scope, analysis.scopes)) is not None
    }
    cpu, lock = (_timed(by_mode, scopes, mode) for mode in (Mode.ACTIVE, Mode.GIL))
    cpu = cpu or _never_seen(by_mode, chosen.scope)
    timed = cpu or lock
    return Reading(
        scope=chosen.scope,
        why=why,
        others=len(chief.scopes) - 1,
        scopes=scopes,
        on_cpu=cpu.work() if cpu else None,
        holds_lock=lock.work() if lock else None,
        lines=timed.rows(lambda scope: scope.lines) if timed else {},
        functions=timed.rows(lambda scope: scope.functions) if timed else {},
    )


@dataclass(frozen=True, slots=True)
class _Timed:
    """A scope's ticks against the looks that were taken; no scope: not one look found it."""

    scope: ScopeAnalysis | None
    looks: Sequence[int]

    def work(self) -> Share:
        if self.scope is None:
            return estimate([0] * len(self.looks), self.looks)
        waits = hits_of(self.scope.waiting, self.scope.ticks)
        return estimate([n - w for n, w in zip(self.scope.ticks, waits, strict=True)], self.looks)

    def rows(self, of: Callable[[ScopeAnalysis], Iterable[Row]]) -> dict[RowKey, Share]:
        """Those that wait are left out: a spin is on a CPU and does no work."""
        if self.scope is None:
            return {}
        return {
            (row.where, row.function): estimate(hits_of(row.share, self.scope.ticks), self.looks)
            for row in of(self.scope)
            if row.wait is None
        }


def _timed(
    by_mode: Mapping[Mode, StackAnalysis], scopes: Mapping[Mode, ScopeAnalysis], mode: Mode
) -> _Timed | None:
    """None where some capture's number of looks is not told, or cannot be right."""
    if mode not in scopes:
        return None
    known, ticks = _known_looks(by_mode[mode]), scopes[mode].ticks
    if known is None or any(n > most for n, most in zip(ticks, known, strict=True)):
        return None
    return _Timed(scopes[mode], known)


def _never_seen(by_mode: Mapping[Mode, StackAnalysis], scope: Scope) -> _Timed | None:
    """A thread that captures without --idle of the same process never found on a CPU; None where it may only
    have another name or id there."""
    if Mode.ACTIVE not in by_mode or Mode.IDLE not in by_mode or not scope.thread_ids:
        return None
    all_ids = {i for other in by_mode[Mode.IDLE].scopes for i in other.scope.thread_ids}
    there = [other.scope for other in by_mode[Mode.ACTIVE].scopes]
    same_process = any(all_ids.intersection(other.thread_ids) for other in there)
    alike = any(
        set(scope.thread_ids).intersection(other.thread_ids) or other.thread_name == scope.thread_name
        for other in there
    )
    known = _known_looks(by_mode[Mode.ACTIVE])
    return _Timed(None, known) if same_process and not alike and known is not None else None


def _known_looks(analysis: StackAnalysis) -> list[int] | None:
    """How many looks each capture took; None where one does not tell."""
    looks = [_looks(capture) for capture in analysis.captures]
    return [n for n in looks if n] if all(looks) else None


def _looks(capture: Capture) -> int | None:
    return told_of(capture).expected_ticks


def hits_of(share: Share, ticks: Sequence[int]) -> list[int]:
    """The hits of a share per capture; its own list leaves out captures without a tick."""
    shares = iter(share.per_capture)
    return [round(next(shares) * n) if n else 0 for n in ticks]
