"""Stops processes for good: asks first, by group where the whole group is meant, then kills what is left.

Nobody is signalled by name or by a bare id: before each signal the targets are looked up anew and must be the
processes that were meant (same id, same start), single ones through a pidfd, which cannot come to mean
another process. What starts while others are being stopped is found in the next round.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from layers.collectors.processes import Process, descendants, read_process, scan, still_there

GRACE_S = 10.0
"""How long processes may take to end when asked to; servers write out and free what they hold."""
KILL_WAIT_S = 5.0
"""A killed process ends at once unless the kernel waits for a device."""
ROUNDS = 5
"""Sweeps over what may have started meanwhile."""
LOOK_S = 0.05

MAY_BE_GONE = suppress(ProcessLookupError, PermissionError)
"""It ended by itself, which is what was wanted, or it is another user's, stays, and is reported as left."""

Find = Callable[[Mapping[int, Process]], Collection[int]]
"""From all processes to the ids of those that are to be stopped."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of the targets: ids that ended when asked, that were killed, that are still there."""

    asked: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


def stop_all(find: Find, grace_s: float = GRACE_S, reap: Callable[[], None] = lambda: None) -> Stopped:
    """Stop everything that `find` names, until it names nothing that lives. Never stops this process.

    `reap` is called while waiting, for a caller whose children are among the targets.
    """
    asked = _wave(find, signal.SIGTERM, grace_s, reap)
    killed = kill_all(find, KILL_WAIT_S, reap)
    left = {process.pid for process in _targets(find)}
    return Stopped(_ordered(asked - killed - left), _ordered(killed - left), _ordered(left))


def kill_all(find: Find, wait_s: float, reap: Callable[[], None] = lambda: None) -> set[int]:
    """Kill everything that `find` names, and what started meanwhile; the ids that were killed."""
    killed: set[int] = set()
    for _ in range(ROUNDS):
        if not (more := _wave(find, signal.SIGKILL, wait_s, reap)):
            break
        killed |= more
    return killed


def stop_family(root: int, grace_s: float, reap: Callable[[], None] = lambda: None) -> Stopped:
    """Stop a process with all that descends from it, and goes on to when the process itself has ended."""
    processes = scan()
    listed = {processes[pid].identity for pid in descendants(processes, [root])}
    return stop_all(lambda seen: still_there(seen, listed), grace_s, reap)


def _wave(find: Find, number: signal.Signals, wait_s: float, reap: Callable[[], None]) -> set[int]:
    """Signal all targets and wait for them; the ids that were signalled."""
    targets = _targets(find)
    _signal_all(targets, number)
    give_up = time.monotonic() + wait_s
    while time.monotonic() < give_up:
        reap()
        if all(_ended(process) for process in targets):
            break
        time.sleep(LOOK_S)
    return {process.pid for process in targets}


def _targets(find: Find) -> list[Process]:
    processes = scan()
    ids = set(find(processes)) - {os.getpid()}
    return [processes[pid] for pid in ids if pid in processes and not processes[pid].gone]


def _signal_all(targets: Collection[Process], number: signal.Signals) -> None:
    """Groups of which every living member is a target as a whole, the others one by one."""
    ids = {process.pid for process in targets}
    members: dict[int, set[int]] = {}
    for process in scan().values():
        if not process.gone:
            members.setdefault(process.group, set()).add(process.pid)
    whole = {group for group, pids in members.items() if pids <= ids and group != os.getpgrp()}
    for group in whole:
        with MAY_BE_GONE:
            os.killpg(group, number)
    for process in targets:
        if process.group not in whole:
            with MAY_BE_GONE:
                _signal_one(process, number)


def _signal_one(process: Process, number: signal.Signals) -> None:
    handle = os.pidfd_open(process.pid)
    try:
        if not _ended(process):
            signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _ended(process: Process) -> bool:
    now = read_process(process.pid)
    return now is None or now.identity != process.identity or now.gone


def _ordered(ids: set[int]) -> tuple[int, ...]:
    return tuple(sorted(ids))
