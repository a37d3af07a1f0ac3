"""Which of a server's processes schedules and runs forward: the one whose stacks are worth recording.

A server is a tree: an HTTP front, the engine, workers, trackers and compilers. Ranked are, in this order: a
known loop of an engine seen in one dump; no HTTP server in it; a GPU's device file held open; libraries of
machine learning or of GPUs mapped; and how many threads of the system it has. A process that cannot be looked
into is ranked by what can be seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layers.collectors.stacks.entries import LOOPS, entry_of
from layers.collectors.stacks.frames import in_file, short
from layers.collectors.stacks.live_facts import Likelier, Obstacle, Obstacles
from layers.collectors.stacks.obstacles import Looker, obstacles, scope_refused
from layers.collectors.stacks.process_facts import ProcessFacts, read_facts
from layers.collectors.stacks.profiler import DumpFailed, Profiler, dump
from layers.collectors.stacks.recording import Other, Target
from layers.evidence.wording import counted
from parsers.errors import UsageError
from parsers.pyspy_dump import DumpedThread

FRONTS = (
    "uvicorn/server.py",
    "hypercorn/run.py",
    "gunicorn/arbiter.py",
    "granian/server.py",
    "aiohttp/web.py",
    "sanic/server/runners.py",
)
"""Files of HTTP servers that are on the stack of a thread as long as they serve."""
MOST_DUMPS = 24
"""Each stops a process for some ms; a server with more Python processes than that has many alike."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One process of the tree. `loop` and `front`: the engine's loop and the HTTP server that its dump shows;
    `names`: its threads' names by their ids. `refused`: what stands against recording it."""

    facts: ProcessFacts
    refused: tuple[Obstacle, ...] = ()
    loop: str = ""
    front: str = ""
    names: tuple[tuple[int, str], ...] = ()

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """Higher is likelier."""
        facts = self.facts
        return bool(self.loop), not self.front, facts.on_gpu, self.computes, facts.threads

    @property
    def computes(self) -> bool:
        """Whether libraries of machine learning or of GPUs are mapped in it."""
        return bool(self.facts.frameworks or self.facts.devices)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The process to record, and another that looks likelier where the user named this one."""

    candidate: Candidate
    target: Target
    likelier: Likelier | None


def choose(pids: Iterable[int], looker: Looker, named: int | None = None) -> Chosen:
    """The likeliest of these processes, or the one that the user named; UsageError where there is none."""
    facts = [one for pid in pids if (one := read_facts(pid)) is not None]
    python_first = sorted(facts, key=lambda one: (one.is_python is False, -one.threads, one.pid))
    found = [consider(one, looker, look=place < MOST_DUMPS) for place, one in enumerate(python_first)]
    ranked = sorted((c for c in found if c.facts.is_python is not False), key=_order)
    wanted = ranked if named is None else [c for c in found if c.facts.pid == named]
    if not wanted:
        seen = ", ".join(str(one.pid) for one in facts) or "none is there"
        raise UsageError(f"no Python process to record (processes looked at: {seen}): name one with --pid")
    taken = wanted[0]
    others = [c for c in [*ranked, *(c for c in found if c not in ranked)] if c is not taken]
    return Chosen(taken, _target(taken, others, named is not None), _likelier(taken, ranked))


def _target(taken: Candidate, others: Sequence[Candidate], named: bool) -> Target:
    facts = taken.facts
    return Target(
        pid=facts.pid,
        argv=facts.argv,
        why=tuple(why(taken, others, named=named)),
        others=tuple(Other(c.facts.pid, c.facts.argv, why_not(c, taken)) for c in others),
        threads=facts.threads,
        python=facts.python,
        namespace_pid=facts.inner_pid,
    )


def consider(facts: ProcessFacts, looker: Looker, *, look: bool = True) -> Candidate:
    """What one dump shows of a process, where one may be made."""
    refused = obstacles(facts, looker)
    if refused or not look or looker.profiler is None:
        return Candidate(facts, refused)
    try:
        threads = _dump_twice(looker.profiler, facts.pid)
    except DumpFailed as error:
        return Candidate(facts, (_dump_refused(facts, looker, str(error)),))
    names = tuple((t.thread_id, t.name) for t in threads if t.thread_id is not None)
    return Candidate(facts, (), _loop(threads), _front(threads), names)


def _dump_twice(profiler: Profiler, pid: int) -> tuple[DumpedThread, ...]:
    """A first attach can fail by chance: somebody else's look, or an interpreter that is just starting."""
    try:
        return dump(profiler, pid)
    except DumpFailed:
        return dump(profiler, pid)


def _dump_refused(facts: ProcessFacts, looker: Looker, said: str) -> Obstacle:
    by_scope = scope_refused(facts, looker.rights, said)
    if by_scope is not None:
        return by_scope
    now = read_facts(facts.pid)
    if now is None or now.start_ticks != facts.start_ticks:
        return Obstacle(Obstacles.ENDED, f"process {facts.pid} ended meanwhile", "name one that runs")
    changed = [one for one in obstacles(now, looker) if one.kind in (Obstacles.ENDED, Obstacles.STOPPED)]
    return next(
        iter(changed),
        Obstacle(
            Obstacles.INTERPRETER,
            f"py-spy cannot read process {facts.pid}: {said}",
            f"see what it says: py-spy dump --pid {facts.pid}",
        ),
    )


def why(taken: Candidate, others: Sequence[Candidate], *, named: bool) -> list[str]:
    """Sentences that speak for the choice."""
    facts = taken.facts
    said = [f"process {facts.pid} was named"] if named else []
    if taken.loop:
        said.append(f"it runs an engine's loop ({taken.loop})")
    if not taken.front and any(other.front for other in others):
        said.append("no HTTP server is in it")
    if facts.on_gpu:
        said.append("it holds a GPU's device file open")
    if facts.frameworks or facts.devices:
        said.append(f"it has mapped {', '.join([*(facts.frameworks or ()), *(facts.devices or ())])}")
    most = max((other.facts.threads for other in others), default=0)
    more = f", more than any other of its tree (at most {most})" if 0 < most < facts.threads else ""
    said.append(f"it has {counted(facts.threads, 'thread')}{more}")
    return said


def why_not(other: Candidate, taken: Candidate) -> str:
    """The first thing by which it is less likely than the one that is recorded."""
    if other.facts.is_python is False:
        return "no Python process"
    if other.refused:
        return f"{other.refused[0].seen}"
    if taken.loop and not other.loop:
        return "no engine's loop in it"
    if other.front and not taken.front:
        return f"an HTTP server is in it ({other.front})"
    if taken.facts.on_gpu and not other.facts.on_gpu:
        return "it holds no GPU's device file open"
    if taken.computes and not other.computes:
        return "no library of machine learning or of GPUs is mapped in it"
    if other.rank < taken.rank:
        return f"{counted(other.facts.threads, 'thread')} against {taken.facts.threads}"
    return "another one was named"


def _likelier(taken: Candidate, ranked: Sequence[Candidate]) -> Likelier | None:
    best = ranked[0] if ranked else taken
    if best is taken or best.rank[:-1] <= taken.rank[:-1]:
        return None
    return Likelier(best.facts.pid, "; ".join(why(best, [taken], named=False)))


def _order(candidate: Candidate) -> tuple[int, ...]:
    return (*(-int(part) for part in candidate.rank), candidate.facts.pid)


def _loop(threads: Iterable[DumpedThread]) -> str:
    entries = (entry_of(thread.frames) for thread in threads)
    return next(
        (short(e.function) for e in entries if e is not None and LOOPS.fullmatch(short(e.function))), ""
    )


def _front(threads: Iterable[DumpedThread]) -> str:
    frames = [frame for thread in threads for frame in thread.frames]
    return next((path for path in FRONTS if any(in_file(frame, path) for frame in frames)), "")
