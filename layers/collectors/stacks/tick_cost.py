"""What one look of py-spy costs its target, measured before the first capture.

A few looks at a low rate, with --idle, which reads most; meanwhile py-spy's own threads are read from the
kernel's scheduler some fifty times a second. Between two looks py-spy sleeps, so the CPU time that its
threads used in one go is one look: for about so long the target stands still, and longer where py-spy itself
has to wait for a CPU in the midst of it. The median counts: two looks may fall into one go.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from layers.collectors.stacks.let_go import WRITE_S
from layers.collectors.stacks.process_facts import ProcessFacts
from layers.collectors.stacks.profiler import Profiler, started
from layers.collectors.stacks.rates import UNKNOWN_HZ
from layers.collectors.stacks.recorder import START_S, Asked, command_of
from layers.collectors.stacks.recording import Mode, TickCost
from layers.collectors.stacks.thread_cpu import look_at_threads

SECONDS, LONGEST_S = 4, 16
"""About 20 looks."""
READ_EVERY_S = 0.02
"""A tenth of the mean time between two looks."""
QUIET_NS = 20_000
"""A timer and the reading of a clock use less in one go; py-spy's cheapest look takes 300 µs (measured)."""
MIN_LOOKS = 5
"""Fewer give no median to rely on: the cost then counts as unknown."""
NS_PER_MS = 1e6


def measure_cost(
    profiler: Profiler, target: ProcessFacts, told: Callable[[], bool] = lambda: False
) -> TickCost | None:
    """The price of one look; None where too few were seen."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Asked(Mode.IDLE, UNKNOWN_HZ, 2 * LONGEST_S, Path(folder) / "cost.json")
        command = command_of(profiler, target.pid, asked)
        with asked.log_path.open("wb") as log, started(command, target.pid, log, log, WRITE_S) as process:
            used_ns = _enough(_series(process, asked.log_path, told))
    looks_ns = bursts(used_ns)
    if len(looks_ns) < MIN_LOOKS:
        return None
    return TickCost(median(looks_ns) / NS_PER_MS, len(looks_ns), target.threads)


def _enough(series: Iterator[int]) -> list[int]:
    """For SECONDS, and for longer where there were too few looks by then."""
    used_ns, begun = list[int](), time.monotonic()
    for used in series:
        used_ns.append(used)
        if time.monotonic() > begun + SECONDS and len(bursts(used_ns)) >= MIN_LOOKS:
            break
    return used_ns


def bursts(used_ns: Sequence[int]) -> list[int]:
    """What was used in one go: neighbouring steps above QUIET_NS are one look, read as it was made. Pure."""
    found, going = [], 0
    for before, after in pairwise(used_ns):
        step = after - before
        if step > QUIET_NS:
            going += step
        elif going:
            found.append(going)
            going = 0
    return found


def _series(process: subprocess.Popen[bytes], log: Path, told: Callable[[], bool]) -> Iterator[int]:
    """What the profiler has used so far, again and again, from its first look on."""
    give_up = time.monotonic() + START_S
    while process.poll() is None and b"Sampling process" not in log.read_bytes():
        if told() or time.monotonic() > give_up:
            return
        time.sleep(READ_EVERY_S)
    until = time.monotonic() + LONGEST_S
    while process.poll() is None and time.monotonic() < until and not told():
        threads = look_at_threads(process.pid).threads.values()
        yield sum(ran_ns for _, ran_ns, _ in threads)
        time.sleep(READ_EVERY_S)
