"""CPU of a server's processes and of each of their threads, sampled while a load runs.

Counters are recorded as they stand, in seconds, so that any window can be cut out afterwards: `total` of all
processes with their ended children, and each thread that has used something since the look before. The
processes are looked for anew at each look. Ticks of the kernel are 10 ms: a window of a second tells a thread
to within a hundredth of a core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from layers.collectors.gpu.schedule import poll
from layers.collectors.gpu.source import Description, Entity, Sink, SourceUnavailable, Values
from layers.collectors.processes import PROC, cpu_ticks, family_of_roots, scan
from layers.evidence.record_log import read_records
from parsers.loss import Loss
from parsers.series_model import NO_DEVICE

SOURCE = "server-cpu"
TOTAL, PROCESSES, THREAD = "total", "processes", "thread "
MIN_PERIOD_NS = 500_000_000
"""A look reads every process of the machine."""
OWN_CPU_FIELDS = slice(11, 13)
"""User and system time in /proc/PID/task/TID/stat after the name (proc_pid_stat(5))."""
NS_PER_S = 1e9


class ServerCpuSource:
    """Targets: process ids, and tags of launches; they and all that descends from them are the server."""

    def __init__(self, targets: Sequence[str]) -> None:
        if not family_of_roots(scan(), targets):
            raise SourceUnavailable("none of the server's processes is on this machine")
        self._probe = CpuProbe(targets)
        self.description = Description((self._probe.entity,))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        poll([self._probe], sink, period_ns, stop)


class CpuProbe:
    """One look at all processes of the server."""

    name = "cpu"
    entity = Entity("server", NO_DEVICE)
    min_period_ns = MIN_PERIOD_NS
    overlap = 1

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._before: dict[str, int] = {}

    def read(self) -> Sequence[Values]:
        processes = family_of_roots(scan(), self._roots)
        hz = os.sysconf("SC_CLK_TCK")
        used = {name: ticks for pid in processes for name, ticks in thread_ticks(pid)}
        changed = {name: t / hz for name, t in used.items() if t != self._before.get(name)}
        self._before = used
        total = sum(map(cpu_ticks, processes)) / hz
        return [Values({TOTAL: total, PROCESSES: float(len(processes)), **changed})]


def thread_ticks(pid: int) -> Iterator[tuple[str, int]]:
    """Name and CPU time, in clock ticks, of each thread of a process that is there."""
    try:
        tasks = list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            stat = (task / "stat").read_bytes()
        except OSError:  # ended meanwhile
            continue
        ticks = sum(map(int, stat.rpartition(b")")[2].split()[OWN_CPU_FIELDS]))
        yield f"{THREAD}{pid}/{task.name}", ticks


@dataclass(frozen=True, slots=True)
class CpuLook:
    """One look: seconds of CPU so far, of all processes and of the threads that used some since the last."""

    at_ns: int
    total_s: float
    processes: int
    threads_s: dict[str, float]


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What a server used between two looks: cores in all, those of its busiest thread, the most processes,
    and the looks."""

    cores: float
    busiest_thread: float
    processes: int
    looks: int


def read_cpu(path: Path, losses: list[Loss]) -> list[CpuLook]:
    """The looks of a recording, in the order of their time."""
    records = (record for _, record in read_records(path, losses))
    looks = [_look(record["mono_ns"], record["values"]) for record in records if record["kind"] == "r"]
    return sorted(looks, key=lambda look: look.at_ns)


def _look(at_ns: int, values: dict[str, float]) -> CpuLook:
    threads = {name: value for name, value in values.items() if name.startswith(THREAD)}
    return CpuLook(at_ns, values[TOTAL], int(values[PROCESSES]), threads)


def cpu_use(looks: Sequence[CpuLook], start_ns: int, end_ns: int) -> CpuUse | None:
    """What was used between the first and the last look inside the window; None below two looks.

    A process that ends takes its time with it, unless its parent waits for it: a sum that falls counts as
    nothing used.
    """
    inside = [look for look in looks if start_ns <= look.at_ns <= end_ns]
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    passed_s = (last.at_ns - first.at_ns) / NS_PER_S
    used_s = sum(max(0.0, after.total_s - before.total_s) for before, after in pairwise(inside))
    began = _threads_until(looks, first.at_ns)
    grew = [at_s - began.get(name, 0.0) for name, at_s in _threads_until(looks, last.at_ns).items()]
    busiest_s, most = max(grew, default=0.0), max(look.processes for look in inside)
    return CpuUse(used_s / passed_s, busiest_s / passed_s, most, len(inside))


def _threads_until(looks: Sequence[CpuLook], at_ns: int) -> dict[str, float]:
    """What each thread had used at a time: the last that was recorded of it until then."""
    until: dict[str, float] = {}
    for look in looks:
        if look.at_ns <= at_ns:
            until |= look.threads_s
    return until
