"""What the frames of a set of captures are made of: it must be the same on both sides of a comparison.

Switches and versions are told by a log or a recording, often by nobody; most of what they change shows in the
frames themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layers.collectors.stacks.frames import is_native
from layers.layer2_stacks.facts import CaptureFacts
from layers.layer2_stacks.flags import GIL, IDLE
from parsers.stack_model import Frame

ABSOLUTE = ("/", "\\")
DRIVE_AT = 1
"""`C:\\...`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is in the frames, and what is told of how they were recorded (empty: by nobody)."""

    threads: bool
    lines: bool
    full_names: bool
    native: bool
    profilers: frozenset[str]
    pythons: frozenset[str]
    switches: frozenset[frozenset[str]]

    def differences(self, other: Shape) -> list[str]:
        """In words; what nobody told on a side is no difference."""
        seen = [
            f"{name} on one side alone"
            for name, mine, its in (
                ("threads", self.threads, other.threads),
                ("lines", self.lines, other.lines),
                ("full file names", self.full_names, other.full_names),
                ("native frames", self.native, other.native),
            )
            if mine is not its
        ]
        told = [
            f"{name}: {_listed(mine)} against {_listed(its)}"
            for name, mine, its in (
                ("profiler", self.profilers, other.profilers),
                ("Python", self.pythons, other.pythons),
                ("switches", _words(self.switches), _words(other.switches)),
            )
            if mine and its and mine != its
        ]
        return seen + told

    @property
    def is_told(self) -> bool:
        """Whether somebody said with which profiler and switches it was recorded."""
        return bool(self.profilers and self.switches)


def shape_of(captures: Sequence[CaptureFacts]) -> Shape:
    """Of all captures of one side."""
    stacks = [stack for c in captures for stack in c.capture.recorded.stacks]
    frames = {frame for stack in stacks for frame in stack.frames}
    python = [frame for frame in frames if not is_native(frame)]
    flags = [c.told.flags for c in captures if c.told.flags is not None]
    return Shape(
        threads=any(stack.thread is not None for stack in stacks),
        lines=any(frame.line is not None for frame in python),
        full_names=any(map(_is_full, python)),
        native=len(python) < len(frames),
        profilers=frozenset(c.told.profiler for c in captures if c.told.profiler),
        pythons=frozenset(c.told.python for c in captures if c.told.python),
        switches=frozenset(one - {IDLE, GIL} for one in flags),
    )


def _is_full(frame: Frame) -> bool:
    return frame.file.startswith(ABSOLUTE) or frame.file[DRIVE_AT : DRIVE_AT + 1] == ":"


def _words(switches: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(" ".join(sorted(one)) or "none" for one in switches)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))
