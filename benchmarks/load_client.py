"""What does the load client itself cost, and how late are its stamps? Against other clients and a floor.

python -m benchmarks.load_client [--seconds 3] [--repeats 3] [--n 1 8 64 256] [--arms floor perfkit aiohttp]
    [--aiperf PROGRAM] [--guidellm PROGRAM] [--tool-n 8 64] [--tool-seconds 8]

A server that is faster than all of them streams events that hold the moment at which they were sent
(`layers.collectors.load.responder`, on a core of its own); `benchmarks.load_arms` says what the arms are.
Paced: 100 events a request, 10 ms apart. Unpaced: all at once, 1 or 64 events. Arms take turns, in an order
that turns round; every cell is a fresh process, pinned to the other core. Printed: medians over repeats, and
[least to most].

Then whole tools, where they are installed (`benchmarks.load_tools`), each once a mode and N, on both cores.
Last the targets (`benchmarks.load_targets`), and whether they hold. An arm whose package is missing is left
out.

Where others use the machine the rates suffer most; CPU a request and a chunk suffer least. Run it on quiet
cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.load_cells import COLUMNS, MANY_AT_ONCE, MODES, PACED, Cell, Cells, table, text
from benchmarks.load_targets import judged
from benchmarks.load_tools import TOOLS, compared, program_of
from layers.collectors.load.responder import responding

SERVER_CORE, CLIENT_CORE = 0, 1
CALLABLE = {"floor": "uvloop", "perfkit": "httptools", "aiohttp": "aiohttp", "httpx": "httpx"}


def pinned(module: str, core: int, *arguments: str) -> list[str]:
    """A module as a program on one core."""
    stay = f"import os, runpy; os.sched_setaffinity(0, {{{core}}})"
    code = f"{stay}; runpy.run_module({module!r}, None, '__main__')"
    return [sys.executable, "-c", code, *arguments]


def measure(arm: str, port: int, n: int, mode: tuple[int, int], seconds: float) -> Cell:
    arguments = (arm, str(port), str(n), str(mode[0]), str(mode[1]), str(seconds))
    command = pinned("benchmarks.load_arms", CLIENT_CORE, *arguments)
    cell: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return cell | {"events": mode[0]}


def show(mode: str, n: int, cells: Mapping[str, Sequence[Cell]]) -> None:
    print(f"\n{mode}, {n} at a time (n = {len(next(iter(cells.values())))} runs an arm)\n")
    rows = [[arm, *(text(of_arm, column) for column in COLUMNS)] for arm, of_arm in cells.items()]
    print(table(["client", *COLUMNS], rows), flush=True)


def take_turns(asked: argparse.Namespace, arms: Sequence[str]) -> Cells:
    """All cells, each table printed once it is full."""
    found: dict[tuple[str, int], Mapping[str, Sequence[Cell]]] = {}
    with responding(SERVER_CORE) as port:
        for mode, n in itertools.product(MODES, asked.n):
            cells: dict[str, list[Cell]] = {arm: [] for arm in arms}
            for repeat in range(asked.repeats):
                for arm in arms if repeat % 2 == 0 else reversed(arms):
                    cells[arm].append(measure(arm, port, n, MODES[mode], asked.seconds))
            show(mode, n, cells)
            found[mode, n] = cells
    return found


def run_tools(asked: argparse.Namespace) -> None:
    """Whole tools, where they are installed: once each, paced and at once."""
    programs = {tool: program_of(tool, getattr(asked, tool)) for tool in TOOLS}
    installed = {tool: program for tool, program in programs.items() if program}
    if left_out := programs.keys() - installed.keys():
        print(f"\nnot installed, left out: {', '.join(sorted(left_out))}")
    for mode, n in itertools.product((PACED, MANY_AT_ONCE), asked.tool_n if installed else ()):
        print(f"\n{mode}, {n} at a time, as whole tools report it (n = 1 run of {asked.tool_seconds:g} s)\n")
        print(compared(installed, SERVER_CORE, n, mode, asked.tool_seconds), flush=True)


def asked_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--arms", nargs="*", default=list(CALLABLE), choices=list(CALLABLE))
    for tool in TOOLS:
        parser.add_argument(f"--{tool}", metavar="PROGRAM", help="where it is not on the path")
    parser.add_argument("--tool-n", type=int, nargs="*", default=[1, 8, 64, 256], help="none: no tool is run")
    parser.add_argument("--tool-seconds", type=float, default=8.0)
    return parser.parse_args(arguments)


def main() -> None:
    asked = asked_of()
    arms = [arm for arm in asked.arms if importlib.util.find_spec(CALLABLE[arm])]
    if left_out := set(asked.arms) - set(arms):
        print(f"not installed, left out: {', '.join(sorted(left_out))}")
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two cores are needed: one for the server, one for the client")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    cells = take_turns(asked, arms) if arms else {}
    run_tools(asked)
    print(f"\nTargets, of medians\n\n{judged(cells)}")


if __name__ == "__main__":
    main()
