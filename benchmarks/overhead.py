"""What does perfkit itself cost? Time to start, CPU and memory of samplers, of stacks, of load, of scrapes.

python -m benchmarks.overhead [--only PART] [--rounds 5] [--write]

Parts: `start` (each command's help, and a small trace), `samplers` (`layer1 --live` and `preflight --watch`),
`stacks` (what py-spy, called as perfkit calls it, costs the service that it records), `client` (the load
process against a responder that is faster), `metrics` (a scrape, on the server's side). Prints tables;
`--write` puts them into docs/overhead.md. Everything is the median of interleaved rounds with lowest and
highest; CPU is user and system time of the process with all its children, memory the peak of the largest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from benchmarks.closed_loop import Server, served, transcriptions
from benchmarks.load_cells import table
from benchmarks.made_up_audio import wav
from benchmarks.page import described, place
from layers.collectors.stacks.profiler import find_profiler, started
from layers.layer3_sweep.calibration import calibrate
from perfkit import __version__
from perfkit.cli.registry import COMMANDS
from tests.writers.decode_loop import decode_loop

PAGE = Path(__file__).resolve().parents[1] / "docs" / "overhead.md"
PERFKIT = (sys.executable, "-m", "perfkit")
ALIASES = ("layer3", "layer4", "layer5")
MS_PER_S = 1e3
KIB_PER_MIB = 1024.0
SHORT_S, LONG_S = 5, 15
RATES_HZ = (5, 20)
AUDIOS, CLIENTS, WARM_UP = 96, 8, 32
SCRAPES, SCRAPE_EVERY_S = 100, 0.05
WRITE_S = 20.0
"""To let py-spy end its file."""


@dataclass(frozen=True, slots=True)
class Spent:
    """One run of a program: wall clock and CPU in seconds, peak memory of its largest process in MiB."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what perfkit costs.")
    parser.add_argument("--only", choices=list(PARTS), action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/overhead.md")
    asked = parser.parse_args()
    for name in asked.only or PARTS:
        machine = described()
        text = f"{PARTS[name](asked.rounds)}\n\n*{asked.rounds} rounds. {machine}*\n"
        print(f"\n{name}\n\n{text}", flush=True)
        if asked.write:
            place(PAGE, name, text)


LAUNCHER = """
import os, sys, time
silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
began_s = time.perf_counter()
_, _, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent), 0)
print(time.perf_counter() - began_s, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""Starts the command from a bare interpreter, whose memory is then the least that can be read: on Linux the
peak of a process counts what the one that started it held (`exec_mmap` of the kernel's fs/exec.c)."""


def spent(command: Sequence[str], folder: Path) -> Spent:
    """Run it with its output thrown away."""
    launch = (sys.executable, "-c", LAUNCHER, *command)
    said = subprocess.run(launch, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    wall_s, cpu_s, peak_kib = map(float, said.stdout.split())
    return Spent(wall_s, cpu_s, peak_kib / KIB_PER_MIB)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median (lowest to highest)."""
    low, middle, high = (f"{one:.{digits}f}" for one in (min(values), median(values), max(values)))
    return f"{middle} ({low} to {high})"


def start(rounds: int) -> str:
    """Every command's help: what it takes until a command begins to work."""
    names = [command.name for command in COMMANDS if command.name not in ALIASES]
    commands: dict[str, Sequence[str]] = {
        "an interpreter alone (`python -c pass`)": (sys.executable, "-c", "pass"),
        "`perfkit --version`": (*PERFKIT, "--version"),
        **{f"`perfkit {name} --help`": (*PERFKIT, name, "--help") for name in names},
        "`perfkit layer1 --trace` (a small one), `--no-record`": (
            *(*PERFKIT, "layer1", "--no-record", "--trace", "decode_loop.json.gz"),
        ),
        "the same, recorded": (*PERFKIT, "layer1", "--trace", "decode_loop.json.gz"),
    }
    with tempfile.TemporaryDirectory() as folder:
        decode_loop().write(Path(folder, "decode_loop.json.gz"))
        runs = interleaved(
            rounds, {name: partial(spent, command, Path(folder)) for name, command in commands.items()}
        )
    rows = [
        (
            *(name, spread([one.wall_s * MS_PER_S for one in found])),
            *(
                f"{median(one.cpu_s for one in found) * MS_PER_S:.0f}",
                f"{median(one.peak_mib for one in found):.0f}",
            ),
        )
        for name, found in runs.items()
    ]
    return table(("command", "ms", "CPU, ms", "memory, MiB"), rows)


def interleaved(rounds: int, arms: dict[str, Callable[[], Spent]]) -> dict[str, list[Spent]]:
    """Every arm once a round, forwards and backwards in turn; a round before that is not counted."""
    found: dict[str, list[Spent]] = {name: [] for name in arms}
    for index in range(-1, rounds):
        for name in list(arms) if index % 2 else list(arms)[::-1]:
            one = arms[name]()
            if index >= 0:
                found[name].append(one)
    return found


def samplers(rounds: int) -> str:
    """The CPU of a long run less that of a short one is what a second of sampling costs."""
    with served("--set", "size=tiny") as server, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{server.port}"
        calls: dict[str, Callable[[int], tuple[str, ...]]] = {
            "`layer1 --live` (device 10 Hz, host, service)": lambda s: (
                "layer1",
                "--live",
                str(s),
                "--server",
                url,
            ),
            "`preflight --watch`": lambda s: ("preflight", "--watch", str(s), "--server", url),
        }
        rows = []
        for name, call in calls.items():
            pairs = [
                [spent((*PERFKIT, *call(s), "--no-record"), Path(folder)) for s in (SHORT_S, LONG_S)]
                for _ in range(rounds)
            ]
            shares = [100 * (long.cpu_s - short.cpu_s) / (LONG_S - SHORT_S) for short, long in pairs]
            rows.append((name, spread(shares, 1), f"{max(long.peak_mib for _, long in pairs):.0f}"))
    return table(("sampling a server that runs", "of one core, %", "memory, MiB"), rows)


def stacks(rounds: int) -> str:
    """Requests a second of a service with and without py-spy beside it, in one start, order turned about."""
    wavs = [wav(number) for number in range(AUDIOS)]
    ratios: dict[tuple[int, bool], list[float]] = {
        (rate, idle): [] for rate in RATES_HZ for idle in (True, False)
    }
    with served("--pipeline", "asr", "--preset", "baseline", "--set", "encoder_cache=off") as server:
        pid = server.info()["processes"]["engine"]
        transcriptions(server, wavs[:WARM_UP], CLIENTS)
        for index in range(rounds):
            for (rate, idle), found in ratios.items():
                order = (False, True) if index % 2 else (True, False)
                speeds = {on: _done_per_s(server, wavs, pid, rate, idle, on=on) for on in order}
                found.append(speeds[True] / speeds[False])
    rows = [
        (f"{rate} Hz, {'with' if idle else 'without'} `--idle`", spread(found, 2))
        for (rate, idle), found in ratios.items()
    ]
    return table(("py-spy records the scheduler", "requests/s, with over without"), rows)


def _done_per_s(server: Server, wavs: Sequence[bytes], pid: int, rate: int, idle: bool, *, on: bool) -> float:
    if not on:
        return transcriptions(server, wavs, CLIENTS).done_per_s
    profiler = find_profiler()
    if profiler is None:
        sys.exit("py-spy is not installed")
    options = ["--format", "speedscope", "--threads", "--full-filenames", "--rate", str(rate)]
    record = [profiler.path, "record", *options, *["--idle"] * idle, "--duration", "600", "--pid", str(pid)]
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "wb") as nowhere:
        command = [*record, "--output", f"{folder}/out"]
        with started(command, pid, nowhere, nowhere, WRITE_S) as spy:
            time.sleep(1)  # it reads the target's symbols first
            done = transcriptions(server, wavs, CLIENTS).done_per_s
            if spy.poll() is not None:
                sys.exit("py-spy ended by itself: has this user the right to trace?")
    return done


def client(rounds: int) -> str:
    """perfkit's own calibration of its load client, once a round."""
    with tempfile.TemporaryDirectory() as folder:
        found = [calibrate(__version__, Path(folder)).costs for _ in range(rounds)]
    rows = [
        (
            *(str(costs[0].streams), spread([one.events_per_s for one in costs])),
            *(
                spread([one.cpu_us_per_event for one in costs], 1),
                spread([one.added_p50_ms for one in costs], 3),
            ),
            *(spread([one.added_p99_ms for one in costs], 2),),
        )
        for costs in zip(*found, strict=True)
    ]
    return table(("streams", "events/s", "CPU an event, µs", "added p50, ms", "added p99, ms"), rows)


def metrics(rounds: int) -> str:
    """What a scrape of /metrics costs the bundled engine, in a server that does nothing else."""
    shares, took_ms = [], []
    with served("--set", "size=tiny") as server:
        tree = [psutil.Process(pid) for pid in server.info()["processes"].values()]
        for _ in range(rounds):
            idle_s = _cpu_over(tree, lambda: None)
            began_s = time.perf_counter()
            busy_s = _cpu_over(tree, lambda: server.metric("engine_device_busy_seconds_total"))
            took_ms.append((time.perf_counter() - began_s) / SCRAPES * MS_PER_S - SCRAPE_EVERY_S * MS_PER_S)
            shares.append((busy_s - idle_s) / SCRAPES * MS_PER_S)
    row = ("a scrape", spread(took_ms, 2), spread(shares, 2))
    return table(("", "ms, as the scraper sees it", "CPU of the server, ms"), [row])


def _cpu_over(tree: Sequence[psutil.Process], call: Callable[[], object]) -> float:
    """CPU seconds of the processes while the call is made so many times, evenly spaced."""
    before = sum(sum(one.cpu_times()[:2]) for one in tree)
    for _ in range(SCRAPES):
        call()
        time.sleep(SCRAPE_EVERY_S)
    return float(sum(sum(one.cpu_times()[:2]) for one in tree) - before)


PARTS: dict[str, Callable[[int], str]] = {
    "start": start,
    "samplers": samplers,
    "stacks": stacks,
    "client": client,
    "metrics": metrics,
}

if __name__ == "__main__":
    main()
