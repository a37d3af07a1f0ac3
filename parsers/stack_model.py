"""Sampled Python stacks as any of py-spy's files gives them: what every reader of stacks returns.

A `Stack` is one distinct stack with the number of samples that hit it. Files that keep the order of samples
(speedscope) give it in `series`, one a thread. Nothing is interpreted here: names, files and lines are as the
profiler wrote them; `layers.layer2_stacks` says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsers.loss import Loss


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `file` is empty and `line` None where the profiler named none (native code has no line)."""

    function: str
    file: str
    line: int | None

    def __str__(self) -> str:
        """As py-spy writes it."""
        if not self.file:
            return self.function
        return f"{self.function} ({self.file}{'' if self.line is None else f':{self.line}'})"


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process and its command line when the profiler found it."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class ThreadName:
    """A thread: its id as written (decimal of the system, 0x... of pthread), its name ("" where unknown)."""

    identity: str
    name: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One distinct stack: `frames` root first, maybe none; `processes` ancestors first, the sampled one last,
    empty where the file names none; `thread` None likewise; `count` in samples, at least 1."""

    processes: tuple[ProcessName, ...]
    thread: ThreadName | None
    frames: tuple[Frame, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RecordedStacks:
    """All stacks of one file. `series`: per thread the samples in order, as indices into `stacks` (empty:
    the format keeps no order). `interval_s` is the time between two samples where the file tells it.
    """

    path: str
    sha256: str
    size_bytes: int
    format: str
    exporter: str
    stacks: tuple[Stack, ...]
    series: tuple[tuple[int, ...], ...]
    interval_s: float | None
    losses: tuple[Loss, ...]

    @property
    def samples(self) -> int:
        """Samples over all stacks."""
        return sum(stack.count for stack in self.stacks)
