"""Two sets of captures side by side: the same thread before and after a change, line by line.

Only what was recorded alike compares: by the same profiler, with the same switches, in the same mode. Each
side keeps its own ticks and design effect, and captures that are void count on neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Artifact
from layers.layer2_stacks.choice import ANY_THREAD, Choice, same_thread
from layers.layer2_stacks.collect import artifact_of
from layers.layer2_stacks.compare import LineChange, compare_functions, compare_scopes
from layers.layer2_stacks.facts import CaptureFacts
from layers.layer2_stacks.guards_compare import COMPARE_GUARDS, CompareFacts
from layers.layer2_stacks.model import Capture, ScopeAnalysis
from layers.layer2_stacks.reading import Reading
from layers.layer2_stacks.weigh import Weighed, weigh


@dataclass(frozen=True, slots=True)
class Comparison:
    """`lines` and `functions` have the largest change first, and none where a guard of effect void fired.

    `before` and `after` are the thread's stacks on either side; None where it is not there.
    """

    thread: str
    mode: Mode
    before: ScopeAnalysis | None
    after: ScopeAnalysis | None
    lines: tuple[LineChange, ...]
    functions: tuple[LineChange, ...]
    guards: tuple[Checked, ...]
    before_files: tuple[Artifact, ...]
    after_files: tuple[Artifact, ...]

    @property
    def void(self) -> bool:
        """Whether the two sides cannot be compared."""
        return strongest_effect(self.guards) is Effect.VOID


def compare_captures(
    before: Sequence[Capture], after: Sequence[Capture], choice: Choice = ANY_THREAD
) -> Comparison | None:
    """Compare the thread that `after` is judged by, or that is chosen of it; None where `after` has no sound
    capture. UsageError where the choice fits no thread of it."""
    new = weigh(after, choice)
    return compare_weighed(weigh(before), new, new.reading) if new.reading is not None else None


def compare_weighed(old: Weighed, new: Weighed, reading: Reading) -> Comparison:
    """The thread and mode of `reading` on both sides of captures that were weighed already."""
    before, after = (_thread_in(side, reading) for side in (old, new))
    sides = (_of_mode(old, reading.mode), _of_mode(new, reading.mode))
    facts = CompareFacts(*sides, reading.mode, before, after)
    guards = tuple(apply_guards(COMPARE_GUARDS, facts, reading.scope.name))
    lines: tuple[LineChange, ...] = ()
    functions: tuple[LineChange, ...] = ()
    if before is not None and after is not None and strongest_effect(guards) is not Effect.VOID:
        lines, functions = compare_scopes(before, after), compare_functions(before, after)
    files = [tuple(artifact_of(c.capture) for c in side) for side in sides]
    return Comparison(reading.scope.name, reading.mode, before, after, lines, functions, guards, *files)


def _thread_in(side: Weighed, reading: Reading) -> ScopeAnalysis | None:
    scopes = [s for a in side.analyses if a.mode is reading.mode for s in a.scopes]
    return same_thread(reading.scope, scopes)


def _of_mode(side: Weighed, mode: Mode) -> tuple[CaptureFacts, ...]:
    return tuple(c for c in side.sound if c.mode is mode)
