"""Whether a server had the cores that it wanted while it profiled itself: a host that others keep busy makes
any trace look host-bound, and an emulated device that waits for a core looks like one that waits for work.

Two looks, at the begin and the end of the profile: who used the CPUs (/proc/stat), and how long each thread
of the server waited for one (schedstat). Of a server whose processes cannot be seen from here nothing is
known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_OURS
from layers.collectors.host_source import Look, compare, take_look
from layers.collectors.processes import family_of_roots, scan
from layers.collectors.servers import server_roots
from layers.collectors.stacks.thread_cpu import CpuLook, between, look_at_threads
from parsers.errors import UsageError


@dataclass(frozen=True, slots=True)
class WaitedForCore:
    """A thread of the server, and the share of the profile that it waited for a CPU."""

    pid: int
    thread: str
    share: float


@dataclass(frozen=True, slots=True)
class HostBeside:
    """Cores of the machine, and how many of them others kept busy on average (None: the kernel does not
    count); `longest`: the thread of the server that waited longest for one (None: nobody tells)."""

    cores: int
    foreign_cores: float | None
    longest: WaitedForCore | None


@dataclass(frozen=True, slots=True)
class HostLook:
    """Counters at one moment."""

    whole: Look
    threads: Mapping[int, CpuLook]


def roots_here(url: str) -> list[str]:
    """What stands for the server's processes; nothing where they cannot be seen: another machine's, another
    container's or another user's."""
    try:
        return server_roots(url)
    except UsageError:
        return []


def look_at_host(roots: Sequence[str]) -> HostLook | None:
    """The counters now; None where the server is not seen."""
    if not roots:
        return None
    processes = scan()
    service = family_of_roots(processes, roots)
    ours = service | family_of_roots(processes, [str(os.getpid())])
    return HostLook(take_look(ours, service), {pid: look_at_threads(pid) for pid in sorted(service)})


def between_looks(before: HostLook | None, after: HostLook | None) -> HostBeside | None:
    """What was used and waited for between two looks."""
    if before is None or after is None:
        return None
    values = compare(before.whole, after.whole).values
    known = CPU_BUSY in values
    foreign = max(0.0, values[CPU_BUSY] - values[CPU_OURS]) if known else None
    cores = round(values[CPU_CORES]) if known else after.whole.cores
    return HostBeside(cores, foreign, _longest(before.threads, after.threads))


def _longest(before: Mapping[int, CpuLook], after: Mapping[int, CpuLook]) -> WaitedForCore | None:
    waited = [
        WaitedForCore(pid, used.name, used.waiting_s / used.window_s)
        for pid in before.keys() & after.keys()
        for used in between(before[pid], after[pid])
    ]
    return max(waited, key=lambda one: (one.share, -one.pid), default=None)
