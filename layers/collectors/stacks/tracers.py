"""Who else samples a process: two profilers on one target take each other's looks (26 to 39 % of them fail at
100 Hz, measured), and both still end with exit code 0.

A profiler holds its target for a moment only, so its trace is rarely seen; its command line says it always.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from layers.collectors.processes import PROC, scan

PROFILERS = re.compile(r"py-spy|austinp?|pyroscope\S*|pystack|rbspy|gdb|strace")
PID_OPTIONS = frozenset({"-p", "--pid"})


def profilers_on(pid: int) -> set[int]:
    """Processes of known profilers and debuggers whose command line names this process."""
    return {found for found in scan() if found != pid and _names(_argv(found), pid)}


def _argv(pid: int) -> list[str]:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _names(argv: list[str], pid: int) -> bool:
    if not argv or not PROFILERS.fullmatch(Path(argv[0]).name):
        return False
    joined = {f"{option}={pid}" for option in PID_OPTIONS} | {f"-p{pid}"}
    apart = any(option in PID_OPTIONS and value == str(pid) for option, value in pairwise(argv))
    return apart or not joined.isdisjoint(argv)
