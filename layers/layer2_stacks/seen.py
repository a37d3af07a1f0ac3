"""One distinct stack as Layer 2 sees it: forks cut, native code folded into the line that called it."""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.stacks.entries import entry_of, is_loop
from layers.collectors.stacks.frames import cut_fork, is_import, is_library, is_native, native_name
from layers.layer2_stacks.model import WaitKind
from layers.layer2_stacks.waits import wait_of, waiting_frames
from parsers.stack_model import Frame, Stack


@dataclass(frozen=True, slots=True)
class Seen:
    """A stack's reading. `leaf` is the last Python frame, the last native one where there is no Python, None
    without any frame; `native` names what ran under it, outermost first; `caller` is the nearest frame above
    it that is neither a library's nor only waits. `inherited`: a loop of an engine is among the parent's
    frames that were cut off."""

    stack: Stack
    leaf: Frame | None
    native: tuple[str, ...]
    entry: Frame | None
    caller: Frame | None
    wait: WaitKind | None
    forked: bool
    importing: bool
    inherited: bool


def see(stack: Stack) -> Seen:
    """The reading of one stack."""
    frames = cut_fork(stack.frames)
    last = max((i for i, f in enumerate(frames) if not is_native(f)), default=-1)
    python, under = frames[: last + 1], frames[last + 1 :]
    leaf = python[-1] if python else frames[-1] if frames else None
    wait = wait_of(python, under)
    above = -waiting_frames(python) if wait is not None else -1
    return Seen(
        stack=stack,
        leaf=leaf,
        native=tuple(native_name(f) for f in under),
        entry=entry_of(frames),
        caller=next((f for f in reversed(python[:above]) if not is_library(f)), None),
        wait=wait,
        forked=len(frames) < len(stack.frames),
        importing=is_import(frames),
        inherited=any(map(is_loop, stack.frames[: len(stack.frames) - len(frames)])),
    )
