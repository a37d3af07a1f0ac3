"""Who uses the CPUs of this machine: how many cores are busy, and how many of them our processes keep busy.

Ours are the processes that were named, by id or by the tag of a launch, and all that descends from them; they
are looked for anew at each look, so that what they start later counts too. What else is busy is somebody
else's: other users, other containers (the kernel counts the whole machine), the hypervisor. A process that
begins and ends between two looks is counted where its parent waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.gpu.fields import (
    CPU_BUSY,
    CPU_CORES,
    CPU_OURS,
    CPU_SERVICE,
    CPU_WAITING,
    PROCESS_OURS,
    of_process,
)
from layers.collectors.gpu.schedule import NS_PER_S, poll
from layers.collectors.gpu.source import Description, Entity, Sink, SourceUnavailable, Values
from layers.collectors.processes import cpu_ticks, family_of_roots, scan
from parsers.series_model import NO_DEVICE

HOST = "host"
STAT = Path("/proc/stat")
PRESSURE = Path("/proc/pressure/cpu")
PERIOD_NS = NS_PER_S
"""A look reads every process of the machine. perfkit's choice: contention that matters lasts longer."""
COUNTED = slice(1, 9)
"""user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)); guest time is part of user."""
IDLE = slice(4, 6)
BESIDE = "beside"
"""Targets after this word are ours and no part of the service: perfkit itself."""
NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Look:
    """Counters since boot: all ticks, busy ones, those of our processes, and of the service's (None: there is
    none); time waited, None without PSI."""

    at_ns: int
    cores: int
    total: int
    busy: int
    ours: int
    waited_ns: int | None
    service: int | None = None


class HostSource:
    """The host's CPUs; the targets are process ids and tags of launches, the service's before BESIDE."""

    def __init__(self, targets: Sequence[str]) -> None:
        if not STAT.exists():
            raise SourceUnavailable(f"{STAT} is not here: the kernel does not tell who uses the CPUs")
        place = targets.index(BESIDE) if BESIDE in targets else len(targets)
        self._probe = HostProbe(targets[:place], targets[place + 1 :])
        self.description = Description((self._probe.entity,))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        poll([self._probe], sink, period_ns, stop)


class HostProbe:
    """One look a second; the first only names our processes, since it takes two to tell what they used."""

    name = "cpu"
    entity = Entity(HOST, NO_DEVICE)
    min_period_ns = PERIOD_NS
    overlap = 1

    def __init__(self, service: Sequence[str], beside: Sequence[str] = ()) -> None:
        self._service, self._beside = service, beside
        self._before: Look | None = None

    def read(self) -> Sequence[Values]:
        processes = scan()
        service = family_of_roots(processes, self._service)
        ours = service | family_of_roots(processes, self._beside)
        before, self._before = self._before, take_look(ours, service if self._service else None)
        values = {of_process(PROCESS_OURS, pid): 1.0 for pid in sorted(ours)}
        if before is None:
            return [Values(values)] if values else []
        used = compare(before, self._before)
        return [Values({**values, **used.values}, used.missing)]


def take_look(ours: set[int], service: set[int] | None = None) -> Look:
    """Read all counters, those of our processes first: what they use meanwhile must not pass for others'."""
    ticks = {pid: cpu_ticks(pid) for pid in ours}
    of_service = None if service is None else sum(ticks[pid] for pid in service)
    lines = [line.split() for line in STAT.read_text().splitlines() if line.startswith("cpu")]
    whole = lines[0]
    total, idle = sum(map(int, whole[COUNTED])), sum(map(int, whole[IDLE]))
    at_ns, of_ours = time.monotonic_ns(), sum(ticks.values())
    return Look(at_ns, len(lines) - 1, total, total - idle, of_ours, _waited_ns(), of_service)


def compare(before: Look, now: Look) -> Values:
    """What was used between two looks, in cores, and the share of the time in which tasks waited."""
    passed = now.total - before.total
    missing: dict[str, str] = {}
    values: dict[str, float] = {}
    if passed > 0:
        values[CPU_CORES] = now.cores
        values[CPU_BUSY] = now.cores * (now.busy - before.busy) / passed
        values[CPU_OURS] = now.cores * max(0, now.ours - before.ours) / passed
        if now.service is not None and before.service is not None:
            values[CPU_SERVICE] = now.cores * max(0, now.service - before.service) / passed
    else:
        missing[CPU_BUSY] = f"{STAT} does not count"
    if now.waited_ns is None or before.waited_ns is None:
        missing[CPU_WAITING] = f"no {PRESSURE} (a kernel without PSI, or psi=0)"
    else:
        values[CPU_WAITING] = (now.waited_ns - before.waited_ns) / (now.at_ns - before.at_ns)
    return Values(values, missing)


def _waited_ns() -> int | None:
    try:
        some = PRESSURE.read_text().splitlines()[0]
    except OSError:
        return None
    return NS_PER_US * int(some.rpartition("total=")[2])
