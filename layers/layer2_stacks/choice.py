"""Which thread the verdict is of: the one asked for, else an engine's loop, else the one with most work.

A capture holds a dozen threads of which most do nothing but wait: a verdict over all of them is one over how
many threads happen to exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.stacks.entries import LOOPS
from layers.evidence.wording import counted, first_few
from layers.layer2_stacks.model import Capture, Scope, ScopeAnalysis, StackAnalysis
from parsers.errors import UsageError

MOSTLY = 0.5
"""Of a thread's looks: with more of them in waits it is no rival of a thread that never moves."""
NAMED = 8
"""Threads that a refusal names."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody asks for: a thread by its name or id, an entry function; empty: perfkit chooses."""

    thread: str = ""
    entry: str = ""


ANY_THREAD = Choice()


def choose(
    scopes: Sequence[ScopeAnalysis],
    choice: Choice,
    active: StackAnalysis | None = None,
    used_s: Mapping[str, float] | None = None,
) -> tuple[ScopeAnalysis, str]:
    """The scope and why. `used_s` is CPU time by thread id where the kernel's count was read (`cpu_seconds`);
    else `active` captures (or those of the lock) tell who is on a CPU. UsageError where nothing fits."""
    used_s = used_s or {}
    asked = [s for s in scopes if _fits(s.scope, choice)]
    if not asked:
        there = first_few((s.scope.name for s in scopes), NAMED)
        raise UsageError(f"{_words(choice)}: no such thread in these captures; there is {there}")
    best = max(
        asked,
        key=lambda s: (
            is_loop_scope(s.scope),
            _used_s(s.scope, used_s),
            active is None and _moves(s),
            _work(s, active),
            s.total_ticks,
            _is_main(s),
        ),
    )
    if choice != ANY_THREAD:
        return best, f"asked for by {_words(choice)}"
    if is_loop_scope(best.scope):
        return best, f"{best.scope.entry} is the loop of an engine"
    if len(scopes) == 1:
        return best, "there is no other"
    if _used_s(best.scope, used_s):
        return best, f"by the kernel's count it used most CPU time of {counted(len(scopes), 'thread')}"
    of = counted(len(scopes), "thread")
    if active is None and _moves(best) and not all(map(_moves, scopes)):
        return best, f"of {of} it has most ticks outside of waits and is not always at one line"
    return best, f"it has most ticks outside of waits of {of}"


def is_loop_scope(scope: Scope) -> bool:
    """Whether it enters at a known loop of an engine."""
    return LOOPS.fullmatch(scope.entry) is not None


def same_thread(scope: Scope, among: Sequence[ScopeAnalysis]) -> ScopeAnalysis | None:
    """The same thread in captures of another mode: by its ids, else by its name and entry, else by its name.

    None where none of these tells one thread.
    """
    rules: tuple[Callable[[Scope], bool], ...] = (
        lambda other: other == scope,
        lambda other: (
            bool(scope.thread_ids) and (other.pids, other.thread_ids) == (scope.pids, scope.thread_ids)
        ),
        lambda other: (other.thread_name, other.entry) == (scope.thread_name, scope.entry),
        lambda other: bool(scope.thread_name) and other.thread_name == scope.thread_name,
    )
    for rule in rules:
        found = [s for s in among if rule(s.scope)]
        if len(found) == 1:
            return found[0]
    return None


def _is_main(scope: ScopeAnalysis) -> bool:
    return scope.scope.thread_name == "MainThread"


def _fits(scope: Scope, choice: Choice) -> bool:
    by_thread = choice.thread in ("", scope.thread_name) or choice.thread in scope.thread_ids
    return by_thread and choice.entry in ("", scope.entry)


def _words(choice: Choice) -> str:
    told = (("--thread", choice.thread), ("--entry", choice.entry))
    return " ".join(f"{option} {value}" for option, value in told if value)


def cpu_seconds(captures: Iterable[Capture]) -> dict[str, float]:
    """Seconds on a CPU by thread id, over the captures that perfkit made: a thread that waits for a device in
    a loop is at work, whatever its stacks look like."""
    used_s: dict[str, float] = defaultdict(float)
    for capture in captures:
        for cpu in capture.recording.threads if capture.recording is not None else ():
            used_s[str(cpu.thread_id)] += cpu.on_cpu_s
    return used_s


def _used_s(scope: Scope, used_s: Mapping[str, float]) -> float:
    return sum(used_s.get(thread_id, 0.0) for thread_id in scope.thread_ids)


def _moves(scope: ScopeAnalysis) -> bool:
    """Outside of waits for most of its looks, and at more than one line: one that always stands at the same
    line may as well be blocked there, in a call of C that no frame shows (`queue.SimpleQueue.get`)."""
    still = any(row.share.hits == scope.total_ticks for row in scope.lines)
    return not still and scope.waiting.value <= MOSTLY


def _work(scope: ScopeAnalysis, active: StackAnalysis | None) -> int:
    running = same_thread(scope.scope, active.scopes) if active else None
    of = running if active is not None else scope
    return of.total_ticks - of.waiting.hits if of is not None else 0
