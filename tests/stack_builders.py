"""Stacks as py-spy writes them down, and short names for building them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from layers.collectors.stacks.recording import Ended, LoadEvidence, Mode, Recording, ThreadCpu
from layers.layer2_stacks.model import Capture, ModeFrom
from parsers.loss import Loss
from parsers.pyspy_log import parse_log
from parsers.stack_model import Frame, ProcessName, RecordedStacks, Stack, ThreadName

MAIN = ThreadName("7", "MainThread")


def frame(text: str) -> Frame:
    """`name file line`, `name file` or `name`."""
    name, file, line = (*text.split(), "", "")[:3]
    return Frame(name, file, int(line) if line else None)


def stack(frames: str, count: int = 1, thread: ThreadName | None = MAIN, *pids: int) -> Stack:
    """Frames separated by `;`, root first."""
    parts = tuple(frame(part) for part in frames.split(";") if part)
    return Stack(tuple(ProcessName(pid, f"python {pid}") for pid in pids), thread, parts, count)


def recorded(
    *stacks: Stack, series: tuple[tuple[int, ...], ...] = (), interval_s: float | None = None
) -> RecordedStacks:
    """Stacks as if a file held them."""
    return RecordedStacks("made.raw", "", 0, "made", "", stacks, series, interval_s, ())


def record(of: Stack) -> str:
    """One record as py-spy 0.4 writes it."""
    parts = [f'process {p.pid}:"{p.command}"' for p in of.processes]
    if of.thread is not None:
        named = f": {of.thread.name}" if of.thread.name else ""
        parts.append(f"thread ({of.thread.identity}){named}")
    return ";".join([*parts, *map(str, of.frames)]) + f" {of.count}"


def write_raw(path: Path, stacks: Iterable[Stack]) -> str:
    """A raw file; its path."""
    path.write_bytes("".join(record(of) + "\n" for of in stacks).encode())
    return str(path)


LOOP = "Scheduler.event_loop_normal engine.py 53"
"""The entry frame of a scheduler."""


def said(
    samples: int,
    *more: str,
    rate_hz: int = 20,
    seconds: int = 25,
    errors: int = 0,
    name: str = "made.raw",
    command: str = "",
) -> str:
    """What py-spy 0.4 prints, with lines of your own before its last."""
    lines = [
        *([f"$ py-spy record {command}"] if command else []),
        f"py-spy> Sampling process {rate_hz} times a second for {seconds} seconds. Press Control-C to exit.",
        "",
        *more,
        f"py-spy> Wrote raw flamegraph data to '{name}'. Samples: {samples} Errors: {errors}",
    ]
    return "\n".join(lines) + "\n"


def capture(
    *stacks: Stack,
    mode: Mode = Mode.IDLE,
    log: str | None = "",
    recording: Recording | None = None,
    mode_from: ModeFrom = ModeFrom.TOLD,
    losses: tuple[Loss, ...] = (),
    name: str = "made.raw",
) -> Capture:
    """A capture with py-spy's words for exactly its samples (None: without any)."""
    found = replace(recorded(*stacks), path=name, losses=losses)
    text = said(found.samples) if log == "" else log
    told = parse_log(text.splitlines()) if text is not None else None
    return Capture(found, mode, told, recording, mode_from)


def captures(n: int, *stacks: Stack, **how: Any) -> list[Capture]:
    """n captures alike, under names of their own."""
    return [capture(*stacks, name=f"c{at}.raw", **how) for at in range(n)]


def recording(
    wall_s: float = 25.0,
    *,
    asked_s: float = 25.0,
    load: LoadEvidence | None = None,
    threads: tuple[ThreadCpu, ...] = (),
    profiler: str = "py-spy 0.4.3",
    command: tuple[str, ...] = ("--idle", "--threads", "--full-filenames"),
) -> Recording:
    """One of perfkit's own, at 20 Hz."""
    begun = datetime(2026, 8, 5, 12, tzinfo=UTC)
    return Recording(
        mode="idle",
        pid=7,
        command=command,
        profiler=profiler,
        target_python="3.11.7",
        rate_hz=20,
        asked_s=asked_s,
        begun=begun,
        ended=begun + timedelta(seconds=wall_s),
        wall_s=wall_s,
        exit_code=0,
        ended_how=Ended.COMPLETE,
        threads=threads,
        load=load,
    )
