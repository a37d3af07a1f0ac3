"""One run of `py-spy record`: started, watched, ended in time, and read for what it said.

    log       stdout and stderr, beside the file: its exit code is 0 whatever happened, only these words tell
    begin     its word that it samples; the time until then, in which it reads symbols, is not counted
    end       by itself; or by SIGINT, which keeps the file, when it is late or perfkit is told to end

Its duration is a number of looks, no time, so a run that cannot keep up lasts longer. It is ended at the
first word of a lag: what it then holds ties its looks to the moments at which the target wakes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from layers.collectors.processes import read_process
from layers.collectors.stacks.let_go import WRITE_S, is_stopped
from layers.collectors.stacks.live_facts import Attempt
from layers.collectors.stacks.process_facts import ProcessFacts, tracer_of
from layers.collectors.stacks.profiler import Profiler, started
from layers.collectors.stacks.rates import longest_s
from layers.collectors.stacks.recording import Ended, Mode, Recording, TickCost
from layers.collectors.stacks.thread_cpu import CpuLook, between, look_at_threads
from layers.collectors.stacks.tracers import profilers_on
from parsers.pyspy_log import PySpyLog, read_log

START_S = 30.0
"""For py-spy to attach and read the interpreter: 0.2 to 2 s measured."""
LOOK_EVERY_S = 0.1
FLAGS = {Mode.IDLE: ("--idle",), Mode.ACTIVE: (), Mode.GIL: ("--gil",)}


@dataclass(frozen=True, slots=True)
class Asked:
    """What to record. `seconds` are whole ones, as py-spy takes them; the log lies beside the file `path`."""

    mode: Mode
    rate_hz: int
    seconds: int
    path: Path

    @property
    def log_path(self) -> Path:
        return log_of(self.path)


def log_of(path: Path) -> Path:
    """Where the words of the run that wrote this file lie."""
    return path.with_suffix(".log")


def command_of(profiler: Profiler, pid: int, asked: Asked) -> tuple[str, ...]:
    """The exact command: without --threads equal stacks of two threads add up, without --full-filenames two
    files of one name are one; never --subprocesses, which samples helpers and hides why it failed."""
    return (
        *(profiler.path, "record", "--pid", str(pid), "--format", "speedscope"),
        *("--threads", "--full-filenames", *FLAGS[asked.mode]),
        *("--rate", str(asked.rate_hz), "--duration", str(asked.seconds), "--output", str(asked.path)),
    )


@dataclass(slots=True)
class _Run:
    """What was seen while it ran."""

    begun: CpuLook | None = None
    tracers: set[int] = field(default_factory=set)
    ended_by_us: Ended | None = None
    told: bool = False


def record(
    profiler: Profiler,
    target: ProcessFacts,
    asked: Asked,
    *,
    names: Mapping[int, str] | None = None,
    cost: TickCost | None = None,
    told: Callable[[], bool] = lambda: False,
    step: Callable[[float], None] = lambda _: None,
) -> Attempt:
    """Run it; whatever comes of it is in the attempt. `step` is told the seconds since it samples."""
    command = command_of(profiler, target.pid, asked)
    begun = datetime.now(UTC)
    run, started_ns = _Run(), time.monotonic_ns()
    with asked.log_path.open("wb") as log, started(command, target.pid, log, log, WRITE_S) as process:
        while process.poll() is None and run.ended_by_us is None and not run.told:
            _watch(run, target.pid, process.pid, asked, started_ns, told, step)
            time.sleep(LOOK_EVERY_S)
        last = look_at_threads(target.pid)
    said, ended_ns = read_log(str(asked.log_path)), time.monotonic_ns()
    begun_ns = run.begun.at_ns if run.begun is not None else started_ns
    recording = Recording(
        mode=str(asked.mode),
        pid=target.pid,
        command=command,
        profiler=str(profiler),
        target_python=target.python,
        rate_hz=asked.rate_hz,
        asked_s=float(asked.seconds),
        begun=begun,
        ended=datetime.now(UTC),
        wall_s=(ended_ns - begun_ns) / 1e9,
        exit_code=process.returncode,
        ended_how=_how(run, said, asked, target),
        threads=between(run.begun, last, names) if run.begun is not None else (),
        cost=cost,
    )
    return Attempt(
        recording,
        path=str(asked.path) if asked.path.is_file() else "",
        log_path=str(asked.log_path),
        window_ns=(begun_ns, ended_ns),
        said=said.fatal,
        lag_s=max(said.lags_s, default=None),
        tracers=tuple(sorted(run.tracers)),
        left_stopped=is_stopped(target.pid),
    )


def _watch(
    run: _Run,
    target: int,
    profiler: int,
    asked: Asked,
    started_ns: int,
    told: Callable[[], bool],
    step: Callable[[float], None],
) -> None:
    """One look at a run: has it begun, is it late, does somebody else trace as well?"""
    text = asked.log_path.read_bytes()
    if run.begun is None and b"Sampling process" in text:
        run.begun = look_at_threads(target)
        run.tracers |= profilers_on(target) - {profiler}
    run.tracers |= {tracer_of(target)} - {profiler, 0}
    run.told = told()
    now_ns = time.monotonic_ns()
    if run.begun is None:
        late = (now_ns - started_ns) / 1e9 > START_S
    else:
        passed_s = (now_ns - run.begun.at_ns) / 1e9
        step(passed_s)
        late = passed_s > longest_s(asked.seconds, asked.rate_hz)
    if late or b"behind in sampling" in text:
        run.ended_by_us = Ended.LATE


def _how(run: _Run, said: PySpyLog, asked: Asked, target: ProcessFacts) -> Ended:
    if run.told:
        return Ended.INTERRUPTED
    if said.fatal or not asked.path.is_file():
        return Ended.TARGET_ENDED if _is_gone(target) else Ended.FAILED
    if said.stopped == "process exited" or _is_gone(target):
        return Ended.TARGET_ENDED
    if run.ended_by_us is not None:
        return run.ended_by_us
    return Ended.INTERRUPTED if said.stopped else Ended.COMPLETE


def _is_gone(target: ProcessFacts) -> bool:
    now = read_process(target.pid)
    return now is None or now.start_ticks != target.start_ticks or now.gone
