"""Whose processes are on the GPUs, and which of them were left behind.

    orphans      carry the tag of a perfkit launch whose launcher is gone, or descend from one that does:
                 ours, and proven so
    running      the same, and the launcher lives
    foreign tag  the launcher belongs to another PID namespace, so nobody here can say
    server       listens at the address that was named, with all that belongs to it
    abandoned    hold a GPU, have no tag, and the session that they were started in has ended. A service
                 that was meant to outlive its login looks the same, so none is stopped unless it is named

Ids that the driver lists and that are nobody here (it lists those of the host, whatever namespace this is)
are unattributable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from layers.collectors.gpu.inventory_model import Gpu
from layers.collectors.processes import (
    Process,
    alive,
    ancestors,
    descendants,
    family_of,
    family_of_roots,
    launcher_of,
)
from layers.collectors.servers import server_address, server_roots
from parsers.errors import UsageError

HoldsGpu = Callable[[int], bool | None]
"""Whether a process holds a GPU's device file open; None where that may not be looked at."""


class Kind(StrEnum):
    """What a family of processes is to us."""

    ORPHANS = "orphans"
    RUNNING = "running"
    FOREIGN = "foreign tag"
    SERVER = "server"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Family:
    """Processes that belong together. `key` names them: a launch's tag, an address, or `group N`. A server
    whose processes cannot be found has no members, and `why` says why."""

    kind: Kind
    key: str
    members: tuple[Process, ...]
    on_gpu: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Unattributable:
    """Ids on a GPU that are no process that can be seen from here."""

    gpu: int
    pids: tuple[int, ...]
    memory_bytes: int | None


def families(
    processes: Mapping[int, Process], me: int, holds_gpu: HoldsGpu, gpus: Sequence[Gpu] = ()
) -> list[Family]:
    """Launched families first, then abandoned holders of a GPU. This process and its parents are in none."""
    mine = ancestors(processes, me) | descendants(processes, [me])
    on_gpu = _on_gpu(holds_gpu, gpus)
    launched = list(_launched(processes, mine, on_gpu))
    known = {process.pid for family in launched for process in family.members}
    return launched + list(_abandoned(processes, mine | known, processes[me].user, on_gpu))


def server_family(
    url: str, processes: Mapping[int, Process], holds_gpu: HoldsGpu, gpus: Sequence[Gpu] = ()
) -> Family:
    """The server that listens at this address, with its whole tree."""
    url = server_address(url).geturl()
    try:
        ids = family_of_roots(processes, server_roots(url))
    except UsageError as error:
        return Family(Kind.SERVER, url, (), (), str(error))
    members = [processes[pid] for pid in sorted(ids) if not processes[pid].gone]
    return _family(Kind.SERVER, url, members, f"listens at {url}", _on_gpu(holds_gpu, gpus))


def _on_gpu(holds_gpu: HoldsGpu, gpus: Sequence[Gpu]) -> Callable[[int], bool]:
    """By the device files that a process holds; by the driver's list where those may not be looked at."""
    listed = {process.pid for gpu in gpus for process in gpu.processes or ()}

    def on_gpu(pid: int) -> bool:
        held = holds_gpu(pid)
        return pid in listed if held is None else held

    return on_gpu


def unattributable(
    gpus: Sequence[Gpu], processes: Mapping[int, Process], holds_gpu: HoldsGpu, host_pids: bool
) -> list[Unattributable]:
    """For each GPU the listed ids that are nobody here.

    Without the host's PID namespace an id that happens to exist here may be another process altogether: it
    must hold the device file to count.
    """
    found = []
    for gpu in gpus:
        strangers = [p for p in gpu.processes or () if not _is_here(p.pid, processes, holds_gpu, host_pids)]
        if strangers:
            sizes = [stranger.memory_bytes for stranger in strangers]
            memory = None if None in sizes else sum(size for size in sizes if size is not None)
            found.append(Unattributable(gpu.index, tuple(p.pid for p in strangers), memory))
    return found


def _is_here(pid: int, processes: Mapping[int, Process], holds_gpu: HoldsGpu, host_pids: bool) -> bool:
    if pid not in processes:
        return False
    held = holds_gpu(pid)
    return host_pids if held is None else held


def _launched(
    processes: Mapping[int, Process], mine: Collection[int], on_gpu: Callable[[int], bool]
) -> Iterator[Family]:
    for tag in sorted({process.launch for process in processes.values() if process.launch}):
        ids = family_of(processes, tag) - set(mine)
        members = [processes[pid] for pid in sorted(ids) if not processes[pid].gone]
        if members:
            kind, why = _kind_of(tag, processes)
            yield _family(kind, tag, members, why, on_gpu)


def _kind_of(tag: str, processes: Mapping[int, Process]) -> tuple[Kind, str]:
    launcher = launcher_of(tag)
    lives = alive(launcher, processes)
    if lives is None:
        return Kind.FOREIGN, "their launcher belongs to another PID namespace"
    if lives:
        return Kind.RUNNING, f"launched by process {launcher.pid}, which runs"
    return Kind.ORPHANS, f"their launcher (process {launcher.pid}) is gone"


def _abandoned(
    processes: Mapping[int, Process], known: Collection[int], user: int, on_gpu: Callable[[int], bool]
) -> Iterator[Family]:
    groups: dict[int, list[Process]] = {}
    for process in processes.values():
        ours = process.user == user and process.pid not in known and not process.gone
        if ours and process.session not in processes:
            groups.setdefault(process.group, []).append(process)
    for group, members in sorted(groups.items()):
        family = _family(
            Kind.ABANDONED, f"group {group}", members, "the session that started them has ended", on_gpu
        )
        if family.on_gpu:
            yield family


def _family(
    kind: Kind, key: str, members: Sequence[Process], why: str, on_gpu: Callable[[int], bool]
) -> Family:
    holders = tuple(process.pid for process in members if on_gpu(process.pid))
    return Family(kind, key, tuple(members), holders, why)
