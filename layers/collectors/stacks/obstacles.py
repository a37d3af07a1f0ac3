"""Why a process cannot be recorded, found out before anything touches it, and what to change. Pure.

py-spy's own words for these mislead: of a zombie, of a process without rights and of one that is gone it says
that the executable's name cannot be had. Each obstacle here names what was seen and the command that helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layers.collectors.rights import NOBODY, SAFE_SCOPES, Rights
from layers.collectors.stacks.live_facts import Obstacle, Obstacles
from layers.collectors.stacks.process_facts import ProcessFacts
from layers.collectors.stacks.profiler import Profiler, Version

STAGES = "without any such right perfkit stages reads the engine's own request events"
ADDED = "docker run --cap-add SYS_PTRACE, in Kubernetes capabilities: add: [SYS_PTRACE]"
CONTAINER = f"in a container: {ADDED}"
SUDO = 'as root: sudo env "PATH=$PATH" perfkit layer2 --pid {}'
OTHER = 'sudo {} env "PATH=$PATH" perfkit layer2 --pid {}'
DESCENDANTS = 1
ROOT = 0


@dataclass(frozen=True, slots=True)
class Looker:
    """Who looks: what this process may do, its groups, and the profiler that it has."""

    rights: Rights
    profiler: Profiler | None
    machine: str


def obstacles(facts: ProcessFacts, looker: Looker) -> tuple[Obstacle, ...]:
    """Every reason not to begin, the first one to mend first."""
    return (*_tool(looker), *_state(facts), *_rights(facts, looker.rights), *_interpreter(facts, looker))


def _tool(looker: Looker) -> Iterator[Obstacle]:
    if looker.profiler is None:
        yield Obstacle(Obstacles.NO_PROFILER, "py-spy is not here", "pip install py-spy")


def _state(facts: ProcessFacts) -> Iterator[Obstacle]:
    if facts.state in "ZX":
        yield Obstacle(
            Obstacles.ENDED,
            f"process {facts.pid} has ended; it is a zombie that its parent has not taken notice of",
            "name a process that runs: perfkit layer2 --server URL finds it",
        )
    elif facts.state == "T":
        yield stopped(facts.pid)
    elif facts.tracer:
        yield Obstacle(
            Obstacles.TRACED,
            f"process {facts.pid} is being traced by process {facts.tracer}",
            f"end that first: a debugger, strace or another profiler (ps -p {facts.tracer})",
        )


def stopped(pid: int) -> Obstacle:
    """A process that stands still, whoever stopped it."""
    seen = f"process {pid} is stopped (SIGSTOP, Ctrl-Z, or a profiler that was killed)"
    return Obstacle(Obstacles.STOPPED, seen, f"let it go on: kill -CONT {pid}")


def _rights(facts: ProcessFacts, rights: Rights) -> Iterator[Obstacle]:
    """ptrace(2): the same user in all ids, or CAP_SYS_PTRACE; then what Yama adds."""
    if facts.state in "ZX":
        return
    if not rights.reads_child:
        seen = "not even a child of our own may be read: a seccomp filter forbids process_vm_readv or ptrace"
        yield Obstacle(Obstacles.RIGHTS, seen, f"{CONTAINER}; {STAGES}")
    elif rights.scope == NOBODY:
        seen = "ptrace_scope is 3: the kernel lets nobody trace until it is booted anew"
        yield Obstacle(Obstacles.RIGHTS, seen, f"set kernel.yama.ptrace_scope below 3 at boot; {STAGES}")
    elif rights.may_trace:
        yield from _right_of_another_namespace(facts)
    elif facts.users != {rights.user} or facts.groups != {rights.group}:
        yield Obstacle(Obstacles.RIGHTS, _whose(facts, rights), f"{_how(facts, rights)}; {STAGES}")
    elif rights.scope not in SAFE_SCOPES and rights.scope != DESCENDANTS:
        seen = f"ptrace_scope is {rights.scope}: only CAP_SYS_PTRACE may trace"
        yield Obstacle(Obstacles.RIGHTS, seen, f"{SUDO.format(facts.pid)}; {CONTAINER}; {STAGES}")
    elif not facts.readable:
        seen = (
            f"process {facts.pid} is this user's and may not be read all the same: it gave up its dumpable "
            "flag, or has more rights than perfkit"
        )
        yield Obstacle(Obstacles.RIGHTS, seen, f"{_how(facts, rights)}; {STAGES}")


def _right_of_another_namespace(facts: ProcessFacts) -> Iterator[Obstacle]:
    """CAP_SYS_PTRACE holds for the processes of perfkit's own user namespace, and of those below it."""
    if facts.refused:
        seen = (
            f"process {facts.pid} may not be read, though perfkit has CAP_SYS_PTRACE: perfkit is in a user "
            "namespace (a rootless container) and the process outside of it, or a security module forbids it"
        )
        fix = "run perfkit outside of that namespace, as the user of the process or as root"
        yield Obstacle(Obstacles.RIGHTS, seen, f"{fix}; {STAGES}")


def _whose(facts: ProcessFacts, rights: Rights) -> str:
    what, theirs, ours = "user", facts.users, rights.user
    if theirs == {ours}:
        what, theirs, ours = "group", facts.groups, rights.group
    named = ", ".join(map(str, sorted(theirs)))
    return f"process {facts.pid} is {what} {named}'s, perfkit runs as {what} {ours} without CAP_SYS_PTRACE"


def _how(facts: ProcessFacts, rights: Rights) -> str:
    """The ways that there are: as whom it runs, unless that is root or perfkit's own user; as root."""
    if rights.user == ROOT:
        return f"give this root CAP_SYS_PTRACE ({CONTAINER})"
    as_root = f"{SUDO.format(facts.pid)} (the root of a container has that right with {ADDED})"
    if len(facts.users) > 1 or len(facts.groups) > 1 or ROOT in facts.users:
        return as_root
    (user,), (group,) = facts.users, facts.groups
    if (user, group) == (rights.user, rights.group):
        return as_root
    whom = f"-u '#{user}'" if user != rights.user else f"-u '#{user}' -g '#{group}'"
    return f"as that user: {OTHER.format(whom, facts.pid)}; {as_root}"


def scope_refused(facts: ProcessFacts, rights: Rights, said: str) -> Obstacle | None:
    """What a dump that was refused means where Yama lets only ancestors trace: py-spy is none."""
    if rights.may_trace or rights.scope != DESCENDANTS or "ermission" not in said:
        return None
    seen = (
        f"ptrace_scope is 1: only its ancestors may trace process {facts.pid}, and py-spy beside it is none"
    )
    fix = (
        "sudo sysctl kernel.yama.ptrace_scope=0; or let the server allow it in each of its processes with "
        "prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) (the bundled engine: --allow-profilers); or "
        f"{SUDO.format(facts.pid)}; {STAGES}"
    )
    return Obstacle(Obstacles.RIGHTS, seen, fix)


def _interpreter(facts: ProcessFacts, looker: Looker) -> Iterator[Obstacle]:
    if not facts.readable:
        return
    if not facts.is_python:
        yield Obstacle(
            Obstacles.INTERPRETER,
            f"process {facts.pid} runs {facts.program}, and no file of it is Python's",
            "name a process that runs Python (perfkit layer2 --server URL looks for one); an interpreter "
            "that is frozen into a program cannot be read",
        )
    elif facts.free_threaded:
        yield Obstacle(
            Obstacles.INTERPRETER,
            f"process {facts.pid} runs a free-threaded Python {facts.python}t, which py-spy cannot read",
            "run the server under the usual build of Python",
        )
    elif _too_new(facts.python, looker.profiler):
        newest = _dotted(looker.profiler.newest_python if looker.profiler else None)
        seen = f"process {facts.pid} runs Python {facts.python}; {looker.profiler} reads up to {newest}"
        yield Obstacle(Obstacles.INTERPRETER, seen, "pip install --upgrade py-spy")
    if facts.machine and looker.machine and facts.machine != looker.machine:
        yield Obstacle(
            Obstacles.INTERPRETER,
            f"process {facts.pid} is a {facts.machine} program, py-spy a {looker.machine} one",
            "install py-spy for the target's architecture, and run it there",
        )


def _too_new(python: str, profiler: Profiler | None) -> bool:
    newest = profiler.newest_python if profiler is not None else None
    return bool(python) and newest is not None and tuple(map(int, python.split("."))) > newest


def _dotted(version: Version | None) -> str:
    return ".".join(map(str, version or ()))
