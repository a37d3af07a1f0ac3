"""What does the load client itself cost, and how late are its stamps? Against other clients and a floor.

python -m benchmarks.load_client [--seconds 3] [--repeats 3] [--n 1 8 64 256] [--arms floor perfkit aiohttp]

A server that is faster than all of them streams events that hold the moment at which they were sent
(`layers.collectors.load.responder`, on a core of its own); `benchmarks.load_arms` says what the arms are.
Paced: 100 events a request, 10 ms apart. Unpaced: all at once, 1 or 64 events. Arms take turns, in an order
that turns round; every cell is a fresh process, pinned to the other core. Printed: medians over repeats, and
[least to most].

Where others use the machine the rates suffer most; CPU a request and a chunk suffer least. Run it on quiet
cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from layers.collectors.load.responder import responding

SERVER_CORE, CLIENT_CORE = 0, 1
MODES = {"paced, 100 events": (100, 10), "at once, 1 event": (1, 0), "at once, 64 events": (64, 0)}
CALLABLE = {"floor": "uvloop", "perfkit": "httptools", "aiohttp": "aiohttp", "httpx": "httpx"}
Cell = dict[str, Any]


def pinned(module: str, core: int, *arguments: str) -> list[str]:
    """A module as a program on one core."""
    stay = f"import os, runpy; os.sched_setaffinity(0, {{{core}}})"
    code = f"{stay}; runpy.run_module({module!r}, None, '__main__')"
    return [sys.executable, "-c", code, *arguments]


def measure(arm: str, port: int, n: int, mode: tuple[int, int], seconds: float) -> Cell:
    arguments = (arm, str(port), str(n), str(mode[0]), str(mode[1]), str(seconds))
    command = pinned("benchmarks.load_arms", CLIENT_CORE, *arguments)
    cell: Cell = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return cell | {"events": mode[0]}


def quantile_ms(values: list[int], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6


COLUMNS: dict[str, Callable[[Cell], float]] = {
    "req/s": lambda cell: cell["chunks"] / cell["events"] / cell["seconds"],
    "cpu %": lambda cell: 100 * cell["cpu_s"] / cell["seconds"],
    "us/request": lambda cell: 1e6 * cell["cpu_s"] * cell["events"] / max(cell["chunks"], 1),
    "us/chunk": lambda cell: 1e6 * cell["cpu_s"] / max(cell["chunks"], 1),
    "added p50 ms": lambda cell: quantile_ms(cell["added_ns"], 0.5),
    "added p99 ms": lambda cell: quantile_ms(cell["added_ns"], 0.99),
    "first p50 ms": lambda cell: quantile_ms(cell["first_ns"] or [0], 0.5),
}
"""`first`: of the first event alone, which is the error of a TTFT. Requests are counted by their events."""


def text(cells: list[Cell], column: Callable[[Cell], float]) -> str:
    values = sorted(map(column, cells))
    digits = 0 if values[-1] >= 100 else 1 if values[-1] >= 10 else 3
    low, middle, high = (f"{v:,.{digits}f}" for v in (values[0], statistics.median(values), values[-1]))
    return f"{middle} [{low} to {high}]"


def show(mode: str, n: int, cells: dict[str, list[Cell]]) -> None:
    print(f"\n{mode}, {n} at a time (n = {len(next(iter(cells.values())))} runs an arm)\n")
    print("| client | " + " | ".join(COLUMNS) + " |")
    print("| --- " * (len(COLUMNS) + 1) + "|")
    for arm, of_arm in cells.items():
        print(f"| {arm} | " + " | ".join(text(of_arm, column) for column in COLUMNS.values()) + " |",
        flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--arms", nargs="+", default=list(CALLABLE), choices=list(CALLABLE))
    asked = parser.parse_args()
    arms = [arm for arm in asked.arms if importlib.util.find_spec(CALLABLE[arm])]
    if left_out := set(asked.arms) - set(arms):
        print(f"not installed, left out: {', '.join(sorted(left_out))}")
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two cores are needed: one for the server, one for the client")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    with responding(SERVER_CORE) as port:
        for mode, shape in MODES.items():
            for n in asked.n:
                cells: dict[str, list[Cell]] = defaultdict(list)
                for repeat in range(asked.repeats):
                    for arm in arms if repeat % 2 == 0 else reversed(arms):
                        cells[arm].append(measure(arm, port, n, shape, asked.seconds))
                show(mode, n, {arm: cells[arm] for arm in arms})


if __name__ == "__main__":
    main()
