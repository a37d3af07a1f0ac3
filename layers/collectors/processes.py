"""Processes of this machine as /proc shows them: who they are, what they descend from, what they hold.

A process is known by its id and its start time together, since ids are used again. Command lines say little
(children of compilers and of multiprocessing are bare interpreters) and are never used to find anything. Of
an environment nothing is read but the tag that perfkit puts into what it starts:

    PERFKIT_LAUNCH=<pid namespace>.<launcher's pid>.<launcher's start>.<random>

Every descendant inherits it, whatever session or group it moves to, so that one which outlived its launcher
is found, and proven to be ours. Only processes of the same user can be looked into.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from parsers.errors import NotPermitted, UsageError

PROC = Path("/proc")
LAUNCH_VARIABLE = "PERFKIT_LAUNCH"
TAG = re.compile(rb"(?:^|\0)" + LAUNCH_VARIABLE.encode() + rb"=([0-9]+\.[0-9]+\.[0-9]+\.[0-9a-f]+)(?:\0|$)")

GPU_FILES = ("/dev/nvidia", "/dev/kfd")
"""How the device files begin that a process holds open as long as it has a CUDA or ROCm context."""

START_FIELD, STATE_FIELD, PARENT_FIELD, GROUP_FIELD, SESSION_FIELD = 19, 0, 1, 2, 3
"""Places in /proc/PID/stat after the name in parentheses (proc_pid_stat(5))."""
CPU_FIELDS = slice(11, 15)
"""There: user and system time of the process, and of its children that ended and were waited for."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `launch` is the tag that it carries, empty without one or where it cannot be read."""

    pid: int
    start_ticks: int
    state: str
    parent: int
    group: int
    session: int
    user: int
    name: str
    launch: str

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start_ticks

    @property
    def gone(self) -> bool:
        """A zombie has ended; it only waits for its parent to take notice, and holds nothing."""
        return self.state in "ZX"


@dataclass(frozen=True, slots=True)
class Launcher:
    """Who made a tag: a process of the PID namespace with this inode number."""

    namespace: int
    pid: int
    start_ticks: int


def scan() -> dict[int, Process]:
    """Every process that can be seen, by id."""
    found = (read_process(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit())
    return {process.pid: process for process in found if process is not None}


def read_process(pid: int) -> Process | None:
    """One process; None where there is none (any more)."""
    folder = PROC / str(pid)
    try:
        stat, user = (folder / "stat").read_bytes(), folder.stat().st_uid
    except OSError:
        return None
    name, _, rest = stat.partition(b"(")[2].rpartition(b")")
    fields = rest.split()
    return Process(
        pid=pid,
        start_ticks=int(fields[START_FIELD]),
        state=fields[STATE_FIELD].decode(),
        parent=int(fields[PARENT_FIELD]),
        group=int(fields[GROUP_FIELD]),
        session=int(fields[SESSION_FIELD]),
        user=user,
        name=name.decode(errors="backslashreplace"),
        launch=_tag_of(folder),
    )


def require_running(pids: Iterable[int]) -> None:
    """UsageError for the first of these ids (--pid) that no process here has, or that may not be seen."""
    for pid in pids:
        if read_process(pid) is None:
            raise _hidden(pid) if _is_hidden(pid) else UsageError(f"--pid {pid}: no such process here")


def _is_hidden(pid: int) -> bool:
    """Whether the kernel knows a process that /proc does not show (hidepid): a signal to it is refused."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        pass
    return False


def _hidden(pid: int) -> NotPermitted:
    why = "another user's process, which /proc hides from this one (hidepid)"
    return NotPermitted(f"--pid {pid}: {why}: run perfkit as that user or as root")


def cpu_ticks(pid: int) -> int:
    """CPU time of a process and of its ended children, in clock ticks; 0 where there is none (any more)."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return 0
    return sum(map(int, stat.rpartition(b")")[2].split()[CPU_FIELDS]))


def _tag_of(folder: Path) -> str:
    try:
        found = TAG.search((folder / "environ").read_bytes())
    except OSError:  # another user's
        return ""
    return found[1].decode() if found else ""


def new_tag() -> str:
    """A tag for what this process is about to start."""
    me = read_process(os.getpid())
    assert me is not None
    return f"{pid_namespace()}.{me.pid}.{me.start_ticks}.{secrets.token_hex(8)}"


def pid_namespace() -> int:
    """The inode number of this process's PID namespace."""
    return (PROC / "self/ns/pid").stat().st_ino


def launcher_of(tag: str) -> Launcher:
    """Who made a tag."""
    namespace, pid, start_ticks, _ = tag.split(".")
    return Launcher(int(namespace), int(pid), int(start_ticks))


def alive(launcher: Launcher, processes: Mapping[int, Process]) -> bool | None:
    """Whether the launcher still runs; None where it belongs to another PID namespace."""
    if launcher.namespace != pid_namespace():
        return None
    process = processes.get(launcher.pid)
    return process is not None and process.start_ticks == launcher.start_ticks and not process.gone


def descendants(processes: Mapping[int, Process], roots: Collection[int]) -> set[int]:
    """The ids of the roots that exist and of all that descends from them."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if pid in processes]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return found


def still_there(processes: Mapping[int, Process], listed: Collection[tuple[int, int]]) -> set[int]:
    """Of processes that were listed by identity those that are still the same, and what they have started."""
    return descendants(processes, {p.pid for p in processes.values() if p.identity in listed})


def ancestors(processes: Mapping[int, Process], pid: int) -> set[int]:
    """The ids of a process and of its parents up to the first one."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def family_of(processes: Mapping[int, Process], tag: str) -> set[int]:
    """All that a launch left behind: what carries its tag, what descends from that, and what is led by it.

    A member of a session or group counts when the leader carries the tag: then the whole of it descends from
    the launch, even a process whose environment was cleaned.
    """
    tagged = {process.pid for process in processes.values() if process.launch == tag}
    led = {p.pid for p in processes.values() if p.session in tagged or p.group in tagged}
    return descendants(processes, tagged | led)


def family_of_roots(processes: Mapping[int, Process], roots: Collection[str]) -> set[int]:
    """All that belongs to any of these, each a process id or the tag of a launch."""
    named = descendants(processes, [int(root) for root in roots if root.isdigit()])
    return named.union(*(family_of(processes, root) for root in roots if not root.isdigit()))


def gpu_files(pid: int) -> frozenset[str] | None:
    """The GPU device files that a process holds open; None where this may not be looked at."""
    try:
        return frozenset(_open_files(pid))
    except OSError:
        return None


def _open_files(pid: int) -> Iterator[str]:
    for entry in (PROC / str(pid) / "fd").iterdir():
        try:
            path = os.readlink(entry)
        except FileNotFoundError:  # closed meanwhile
            continue
        if path.startswith(GPU_FILES):
            yield path
