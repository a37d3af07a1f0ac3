"""Which other processes used CPU while something was measured, most first: names for what held the cores.

Who came and went between the two looks is not seen, nor are processes of other containers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from layers.collectors.processes import Process, cpu_ticks, descendants, family_of_roots, scan

SHOWN = 3


class BusyOthers:
    """Begins to look when it is made. `roots`: what stands for the server, which is none of the others."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = list(roots)
        self._before = _ticks(scan())

    def most(self) -> list[str]:
        """Names with process ids of those that used the most since."""
        processes = scan()
        ours = {os.getpid(), *descendants(processes, [os.getpid()]), *family_of_roots(processes, self._roots)}
        others = {pid: one for pid, one in processes.items() if pid not in ours}
        used = {key: ticks - self._before.get(key, 0) for key, ticks in _ticks(others).items()}
        busy = sorted((key for key, ticks in used.items() if ticks > 0), key=lambda key: -used[key])
        return [f"{others[pid].name} ({pid})" for pid, _ in busy[:SHOWN]]


def _ticks(processes: Mapping[int, Process]) -> dict[tuple[int, int], int]:
    """CPU time by process id and start: ids are used again."""
    return {(pid, one.start_ticks): cpu_ticks(pid) for pid, one in processes.items()}
