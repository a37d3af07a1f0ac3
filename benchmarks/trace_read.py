"""How fast perfkit reads a large trace, beside json.load and HolisticTraceAnalysis on the same file in one
run.

python -m benchmarks.trace_read [--megabytes 1100] [--rounds 3] [--native FILE] [--stacks FILE] [--hta
PYTHON] [--folder FOLDER]

Two files are made (benchmarks.trace_files), each plain and gzip; in a --folder they are kept for the next
run. Every method is a process of its own: wall and CPU time as the operating system counts them, and the
peak of the proportional set size (PSS) summed over all its processes. Reading that takes cores from what is
timed, so it has a round of its own. The *floor* is what no
reader can undercut: read, inflate, one search for a literal. Rounds are interleaved over the methods;
medians are printed, as ratios too, since the machine's own speed drifts. HTA 0.5 needs pandas < 3 and so a
virtual environment of its own, whose python --hta names; it is run once and on the plain file, being slow.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.trace_files import MEGABYTE, write_repeated

FLAVOURS = ("native", "stacks")
SAMPLE_S = 0.02
PERFKIT = [sys.executable, "-m", "perfkit", "layer1", "--no-record", "--json"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as they are for a user: a tool is not timed compiling itself."""
FLOOR = """
import sys
from isal import igzip
path = sys.argv[1]
file = igzip.open(path) if path.endswith(".gz") else open(path, "rb")
found = 0
while piece := file.read(4 << 20):
    found += piece.count(b'"kernel"')
print(found)
"""
JSON_LOAD = """
import gc, gzip, json, sys
gc.disable()
path = sys.argv[1]
file = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
print(len(json.load(file)["traceEvents"]))
"""
HTA = """
import os, sys, tempfile
from hta.trace_analysis import TraceAnalysis
path = sys.argv[1]
analysis = TraceAnalysis(trace_files={0: os.path.basename(path)}, trace_dir=os.path.dirname(path))
print(analysis.get_temporal_breakdown(visualize=False).to_dict())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took; `peak_pss_mb` is 0 where nobody watched."""

    wall_s: float
    cpu_s: float
    peak_pss_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Method:
    """A way to read a trace; `slow` ones are run once."""

    name: str
    command: list[str]
    slow: bool = False


def methods(hta_python: str | None) -> list[Method]:
    """Everything that is compared, the floor first."""
    found = [
        Method("floor: read + inflate + one search", [sys.executable, "-c", FLOOR]),
        Method("perfkit layer1 --busy-only", [*PERFKIT, "--busy-only"]),
        Method("perfkit layer1", PERFKIT),
        Method("json.load (gc off)", [sys.executable, "-c", JSON_LOAD], slow=True),
    ]
    return found + (
        [Method("HTA 0.5 load + breakdown", [hta_python, "-c", HTA], slow=True)] if hta_python else []
    )


def run(command: list[str], *, watched: bool) -> Cost:
    """Run a command to its end and say what it cost, its memory only where it is `watched`: that takes time
    from it. Exit codes of perfkit's verdicts are not failures.
    """
    before, started, peak = os.times(), time.perf_counter(), 0
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    while watched and process.poll() is None:
        peak = max(peak, _pss_bytes(process))
        time.sleep(SAMPLE_S)
    _, said = process.communicate()
    wall_s, after = time.perf_counter() - started, os.times()
    if process.returncode not in (0, 3):
        raise RuntimeError(f"{command}: exit {process.returncode}: {said[-2000:].decode()}")
    cpu_s = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(wall_s, cpu_s, peak / MEGABYTE)


def _pss_bytes(process: psutil.Process) -> int:
    total = 0
    for one in [process, *_children(process)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:
            continue  # it ended between being listed and being asked
    return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def compare(path: Path, text_bytes: int, hta_python: str | None, rounds: int) -> None:
    """Run every method on one file and print the table."""
    costs: dict[str, list[Cost]] = {}
    peaks: dict[str, float] = {}
    for number in range(rounds + 1):
        watched = number == rounds  # slow methods run in this round alone
        for method in methods(hta_python):
            if method.slow and not watched:
                continue
            cost = run([*method.command, str(path)], watched=watched)
            if watched:
                peaks[method.name] = cost.peak_pss_mb
            if method.slow or not watched:
                costs.setdefault(method.name, []).append(cost)
    rows = {name: _median(of) for name, of in costs.items()}
    floor_s = next(iter(rows.values())).wall_s
    hta = next((cost for name, cost in rows.items() if name.startswith("HTA")), None)
    print(
        f"\n{path.name}: {text_bytes / MEGABYTE:,.0f} MB of text, "
        f"{path.stat().st_size / MEGABYTE:,.0f} MB on disk"
    )
    print(
        f"{'method':36}{'wall s':>8}{'MB/s':>7}{'CPU s':>8}{'PSS MB':>8}{'of floor':>10}{'x HTA':>8}{'n':>4}"
    )
    for name, cost in rows.items():
        against = f"{hta.wall_s / cost.wall_s:.1f}" if hta else "-"
        speed = text_bytes / MEGABYTE / cost.wall_s
        times = f"{cost.wall_s:>8.2f}{speed:>7.0f}{cost.cpu_s:>8.2f}{peaks[name]:>8.0f}"
        print(f"{name:36}{times}{floor_s / cost.wall_s:>10.2f}{against:>8}{len(costs[name]):>4}")


def _median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.wall_s for c in costs), statistics.median(c.cpu_s for c in costs))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time readers of large traces.")
    parser.add_argument("--megabytes", type=int, default=1100, help="of text in each file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flavour", choices=FLAVOURS, action="append", help="only this file (both)")
    parser.add_argument("--native", type=Path, help="a trace to repeat for the file with many device events")
    parser.add_argument("--stacks", type=Path, help="a trace to repeat for the file with Python stacks")
    parser.add_argument(
        "--hta", metavar="PYTHON", help="the python of an environment that has HTA 0.5, pandas < 3"
    )
    parser.add_argument("--folder", type=Path, help="where the files are, or are made and kept")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with contextlib.ExitStack() as stack:
        folder = asked.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for flavour in asked.flavour or FLAVOURS:
            source = {"native": asked.native, "stacks": asked.stacks}[flavour]
            plain, packed = folder / f"{flavour}.json", folder / f"{flavour}.json.gz"
            for path in (plain, packed):
                if not path.exists():
                    write_repeated(path, flavour, asked.megabytes * MEGABYTE, source)
            text_bytes = plain.stat().st_size
            for path, hta_python in ((plain, asked.hta), (packed, None)):
                compare(path, text_bytes, hta_python, asked.rounds)


if __name__ == "__main__":
    main()
