"""CPU time of each thread over a window, from the kernel's scheduler: exact, and nobody is stopped for it.

The independent check of what a capture calls active: /proc/PID/task/TID/schedstat counts the nanoseconds
that a thread ran, and those that it was ready and waited for a CPU. A thread that came or went inside the
window is left out, since its share of the window is not known.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from layers.collectors.processes import PROC
from layers.collectors.stacks.recording import ThreadCpu

NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class CpuLook:
    """Counters at one moment: of each thread its name, ns on a CPU and ns waiting for one. Empty where the
    process is gone or may not be read, or the kernel keeps no such counts."""

    at_ns: int
    threads: Mapping[int, tuple[str, int, int]] = field(default_factory=dict)


def look_at_threads(pid: int) -> CpuLook:
    """The counters now."""
    at_ns = time.monotonic_ns()
    try:
        tasks = [int(task.name) for task in (PROC / str(pid) / "task").iterdir()]
    except OSError:
        return CpuLook(at_ns)
    read = {tid: counters for tid in tasks if (counters := _counters(pid, tid)) is not None}
    return CpuLook(at_ns, read)


def between(before: CpuLook, after: CpuLook, names: Mapping[int, str] | None = None) -> tuple[ThreadCpu, ...]:
    """What each thread used that both looks saw, the busiest first; `names` are better ones, by thread id."""
    window_s = (after.at_ns - before.at_ns) / NS_PER_S
    both = sorted(before.threads.keys() & after.threads.keys())
    if window_s <= 0:
        return ()
    used = [_used(tid, before, after, (names or {}).get(tid, ""), window_s) for tid in both]
    return tuple(sorted(used, key=lambda one: (-one.on_cpu_s, one.thread_id)))


def _used(tid: int, before: CpuLook, after: CpuLook, name: str, window_s: float) -> ThreadCpu:
    own, ran_ns, waited_ns = after.threads[tid]
    _, ran_before_ns, waited_before_ns = before.threads[tid]
    ran_s, waited_s = (ran_ns - ran_before_ns) / NS_PER_S, (waited_ns - waited_before_ns) / NS_PER_S
    return ThreadCpu(tid, name or own, ran_s, waited_s, window_s)


def _counters(pid: int, tid: int) -> tuple[str, int, int] | None:
    folder = PROC / str(pid) / "task" / str(tid)
    try:
        ran_ns, waited_ns, _ = (folder / "schedstat").read_text().split()
        name = (folder / "comm").read_text(errors="replace").strip()
    except (OSError, ValueError):  # it ended, or a kernel without CONFIG_SCHED_INFO
        return None
    return name, int(ran_ns), int(waited_ns)
