"""What the guards of Layer 2 look at: one capture with its counts; and all of them with the thread chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.collectors.stacks.frames import is_import
from layers.collectors.stacks.recording import LoadEvidence, Mode
from layers.layer2_stacks.model import Capture, Row, ScopeAnalysis, StackAnalysis
from layers.layer2_stacks.reading import Reading
from layers.layer2_stacks.scopes import split
from layers.layer2_stacks.told import Told, told_of


@dataclass(frozen=True, slots=True)
class ThreadTicks:
    """One thread of a capture (or all that enters at one frame): its ticks, and how many of them wait."""

    name: str
    ticks: int
    waiting: int


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """One capture alone. `importing` samples were inside an import; `threads` have most ticks first."""

    capture: Capture
    told: Told
    threads: tuple[ThreadTicks, ...]
    importing: int

    @property
    def samples(self) -> int:
        return self.capture.recorded.samples

    @property
    def mode(self) -> Mode:
        return self.capture.mode

    @property
    def ticks(self) -> int:
        """Of the fullest thread: how often the profiler looked, as far as the file tells."""
        return max((thread.ticks for thread in self.threads), default=0)

    @property
    def threads_known(self) -> bool:
        """Whether stacks name their thread."""
        return all(stack.thread is not None for stack in self.capture.recorded.stacks)


@dataclass(frozen=True, slots=True)
class Facts:
    """The captures that count, each with its facts, their analyses by mode, and the thread of the verdict."""

    captures: tuple[CaptureFacts, ...]
    analyses: tuple[StackAnalysis, ...]
    reading: Reading

    @property
    def main(self) -> ScopeAnalysis:
        """The thread in the mode that the verdict's shares are of."""
        return self.reading.main

    @property
    def top(self) -> Row | None:
        """Its first line."""
        return next(iter(self.main.lines), None)

    def of_mode(self, mode: Mode) -> list[CaptureFacts]:
        """The captures of one mode."""
        return [c for c in self.captures if c.mode is mode]

    @property
    def loads(self) -> list[LoadEvidence]:
        """What is known of the load, of the captures that somebody watched."""
        found = (c.capture.recording.load for c in self.captures if c.capture.recording is not None)
        return [load for load in found if load is not None]


def capture_facts(capture: Capture) -> CaptureFacts:
    """All about one capture, by itself."""
    threads = [
        ThreadTicks(
            of.scope.name,
            sum(s.stack.count for s in of.captures[0]),
            sum(s.stack.count for s in of.captures[0] if s.wait is not None),
        )
        for of in split([capture])
    ]
    importing = sum(stack.count for stack in capture.recorded.stacks if is_import(stack.frames))
    return CaptureFacts(capture, told_of(capture), tuple(threads), importing)


def names(captures: Sequence[Capture]) -> list[str]:
    """A name for each capture: its file's, or the path where two files have one name."""
    short = [capture.name for capture in captures]
    return [capture.recorded.path if short.count(capture.name) > 1 else capture.name for capture in captures]
