"""Stacks as py-spy writes them down, and short names for building them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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
