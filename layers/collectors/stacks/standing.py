"""Processes of a service that stand still, or have ended and are still listed, by their state in /proc.

A server is a chain: whatever waits behind a stopped link is no evidence of what holds requests up, and
nothing that is sent through it is answered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from layers.collectors.processes import Process, ancestors, descendants, family_of_roots, scan
from layers.collectors.stacks.live_facts import Obstacle
from layers.collectors.stacks.obstacles import stopped

STOPPED = "T"
"""proc_pid_stat(5). A look of a profiler stops a process as well, for ms: that is `t`."""


def members(roots: Sequence[str]) -> list[Process]:
    """The processes of a service, without perfkit's own and its parents; zombies too."""
    processes, me = scan(), os.getpid()
    found = family_of_roots(processes, roots)
    if me in found:  # it stands for a shell, or a session, that perfkit was started from
        found -= descendants(processes, [me])
    return [processes[pid] for pid in sorted(found - ancestors(processes, me))]


def standing_still(roots: Sequence[str]) -> tuple[Obstacle, ...]:
    """Each process of a service that is stopped, with the command that lets it go on."""
    return tuple(stopped(process.pid) for process in members(roots) if process.state == STOPPED)


def in_the_way(roots: Sequence[str]) -> tuple[str, ...]:
    """The stopped ones in words, then those that have ended: why a service may answer nothing."""
    return (*map(str, standing_still(roots)), *_ended(members(roots)))


def _ended(processes: Iterable[Process]) -> list[str]:
    return [f"process {one.pid} ({one.name}) has ended; it is a zombie" for one in processes if one.gone]
